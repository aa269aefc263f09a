"""pcie_aspm=off leaves the link power saving as firmware set it, and it may be on."""

from __future__ import annotations

from collections.abc import Iterator

from nodeprep.diagnose.evidence import Evidence
from nodeprep.diagnose.rule import Finding, Rule
from nodeprep.diagnose.rules._words import listed


def explain(evidence: Evidence) -> Iterator[Finding]:
    """One finding a host whose GPUs still have ASPM on under pcie_aspm=off."""
    for host in evidence.hosts:
        booted = evidence.seen("boot.cmdline", host=host)
        if not booted or "pcie_aspm=off" not in booted[-1].data["args"]:
            continue
        on = [
            event
            for event in evidence.open("lspci.device", host=host)
            if event.data.get("vendor") == "nvidia" and str(event.data.get("aspm", "Disabled")) != "Disabled"
        ]
        if on:
            yield Finding(
                layer="config",
                severity="warning",
                device=on[0].device if len(on) == 1 else "",
                summary=f"ASPM is on at {listed(event.device for event in on)} although the kernel "
                "has pcie_aspm=off",
                why=(
                    "The argument keeps the kernel's hands off ASPM: what firmware set up stays, "
                    "and the kernel no longer "
                    "manages it."
                ),
                events=(booted[-1], *on),
                action="fix_config",
                then=("disable_aspm", "measure_link_under_load"),
                count=1,
            )


RULE = Rule(id="aspm_left_on", rank=59, explain=explain)
