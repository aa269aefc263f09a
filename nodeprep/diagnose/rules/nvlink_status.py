"""Links of NVLink that nvidia-smi shows as down, or as having made errors, with no Xid to tell why."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from nodeprep.diagnose.event import Event
from nodeprep.diagnose.evidence import Evidence
from nodeprep.diagnose.rule import Finding, Rule
from nodeprep.diagnose.rules._words import listed, plural

# Source: product names of nvidia-smi. These sit on boards that wire every link; cards of PCIe have theirs
# at a bridge, which most hosts are sold without: links that are down tell nothing there.
_WIRED = re.compile(r"SXM|HGX|\bHBM3e?$|NVIDIA (?:H200|H20|H800|G?B200|G?B300)$")
# What tells the reason itself; links that are down are then no news.
_REASONS = (
    "xid.74", *(f"xid.{code}" for code in range(144, 151)), "sxid.", "fabric.version_mismatch",
    "fabric.manager_failed", "fabric.no_nvswitch", "cuda.system_not_ready", "xid.79",
    "gpu.fallen_off_bus", "gpu.fallen_off_bus_noted", "gpu.lost_status", "gpu.init_failed", "gpu.bar_missing",
)  # fmt: skip
# A counter of 16 bits that is full.
_FULL = 65535


def explain(evidence: Evidence) -> Iterator[Finding]:
    """A GPU with fewer links than its peers, GPUs with none, then counters."""
    for host in evidence.hosts:
        pages = evidence.open("nvlink.status", host=host)
        if not evidence.seen(*_REASONS, host=host):
            yield from _down([event for event in pages if _WIRED.search(str(event.data["name"]))])
        evidence.explain(pages)
        if errors := evidence.open("nvlink.errors", host=host):
            yield _counted(errors)


def _down(pages: Sequence[Event]) -> Iterator[Finding]:
    most = max((len(event.data["up"]) for event in pages), default=0)
    # A guest that was given one GPU of a board has no peer to link to.
    if not most and len(pages) == 1:
        return
    if pages and not most:
        yield Finding(
            layer="config",
            severity="warning",
            summary=f"no link of NVLink is up on {_gpus(pages)}",
            why=(
                "These GPUs sit on a board that wires their links. All down at once is mostly a fabric "
                "manager that does not run or a version of it that does not fit the driver; it is "
                "meant so with MIG switched on and in a guest that was given a part of the board."
            ),
            events=tuple(pages),
            action="fix_config",
            then=("check_fabric_manager", "match_fabric_manager_version", "check_fabric_state_completed"),
            count=len(pages),
        )
        return
    fewer = [
        event
        for event in pages
        if len(event.data["up"]) < most and (event.data["down"] or not event.data["up"])
    ]
    if not fewer:
        return
    yield Finding(
        layer="hardware",
        severity="warning",
        summary=f"links of NVLink are down on {_gpus(fewer)}",
        why=" ".join(
            f"GPU {event.data['gpu']} has {plural(len(event.data['up']), 'link')} up"
            + (f" (not {listed([str(link) for link in event.data['down']])})" if event.data["down"] else "")
            + f", others of the board have {most}."
            for event in fewer
        )
        + " The kernel log says why (Xid 74 or 144 to 150, SXid), and whether the other end failed first.",
        events=tuple(fewer),
        action="run_diagnostics",
        then=("check_nvlink_and_peer", "check_fabric_manager"),
        count=len(fewer),
    )


def _counted(errors: Sequence[Event]) -> Finding:
    recovered = [event for event in errors if event.data["recovery"]]
    full = any(_FULL in (event.data["crc"], event.data["replay"]) for event in errors)
    parts = [
        f"GPU {event.data['gpu']}: {event.data['replay']} replay, {event.data['recovery']} recovery and "
        f"{event.data['crc']} CRC errors."
        for event in errors
    ]
    parts.append(
        "A recovery means that the link was trained anew, and traffic stood still meanwhile."
        if recovered
        else "Each was corrected by sending again. Only counts that grow matter, so read them twice."
    )
    if full:
        parts.append(f"A count of {_FULL} is the end of a counter and no number of errors.")
    return Finding(
        layer="hardware",
        severity="warning" if recovered else "info",
        summary=f"links of NVLink counted errors on {_gpus(errors)}",
        why=" ".join(parts),
        events=tuple(errors),
        action="observe",
        then=("check_nvlink_and_peer",),
        count=len(errors),
    )


def _gpus(events: Sequence[Event]) -> str:
    names = [str(event.data["gpu"]) for event in events]
    return f"GPU {names[0]}" if len(names) == 1 else f"{plural(len(names), 'GPU')} ({listed(names)})"


RULE = Rule(id="nvlink_status", rank=64, explain=explain)
