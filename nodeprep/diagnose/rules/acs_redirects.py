"""Bridges send traffic between GPUs through the root complex (ACS), and collectives hang or crawl."""

from __future__ import annotations

from collections.abc import Iterator

from nodeprep.diagnose.event import Event
from nodeprep.diagnose.evidence import Evidence
from nodeprep.diagnose.rule import Finding, Rule
from nodeprep.diagnose.rules._words import listed, plural

# Source: PCI Express Base Specification, ACS control register; with these on, peers do not reach each other.
_REDIRECTS = {"ReqRedir", "CmpltRedir", "UpstreamFwd"}


def explain(evidence: Evidence) -> Iterator[Finding]:
    """One finding a host: a cause where collectives are in trouble, else for information."""
    for host in evidence.hosts:
        bridges = [
            event
            for event in evidence.open("lspci.device", host=host)
            if {"ReqRedir", "CmpltRedir"} & _redirects(event)
        ]
        if not bridges:
            continue
        trouble = evidence.open("nccl.timeout", "nccl.system_error", "nccl.network", "iommu.fault", host=host)
        if trouble:
            trouble += [event for event in evidence.open("nccl.", host=host) if event not in trouble]
        started = evidence.open("collective.started", host=host)
        flags = listed(sorted(set().union(*map(_redirects, bridges))))
        told = "collectives are in trouble" if trouble else "a collective library ran" if started else ""
        yield Finding(
            layer="config",
            severity="error" if trouble else "warning" if started else "info",
            device="",
            summary=f"ACS redirects traffic between peers at {plural(len(bridges), 'bridge')} ({flags})"
            + (f", and {told}" if told else ""),
            why=(
                f"{listed([event.device for event in bridges][:6])} have {flags} on, so copies "
                "between GPUs go through the "
                "root complex and the IOMMU, which makes them slow or hang. On bare metal it serves "
                "nothing; hosts of "
                "virtual machines need it."
            ),
            events=(*bridges, *trouble, *started[:2]),
            action="fix_config" if told else "observe",
            then=("disable_acs_in_bios_or_setpci", "use_iommu_pt", "disable_peer_to_peer"),
            root_event="lspci.device",
            root_device=bridges[0].device,
            count=1,
        )


def _redirects(event: Event) -> set[str]:
    return set(event.data.get("acs_on", ())) & _REDIRECTS


RULE = Rule(id="acs_redirects", rank=46, explain=explain)
