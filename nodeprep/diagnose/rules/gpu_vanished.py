"""A GPU is gone from the bus, and neither driver nor kernel said a word."""

from __future__ import annotations

from collections.abc import Iterator

from nodeprep.diagnose.event import Event
from nodeprep.diagnose.evidence import Evidence
from nodeprep.diagnose.rule import Finding, Rule
from nodeprep.diagnose.rules._words import listed, plural

# A listing of less is of chosen devices (lspci -s, -d) and proves no absence.
_WHOLE_LISTING = 3
_THEN = ("reboot_node", "cold_power_cycle_if_reboot_fails", "compare_with_inventory", "inspect_hardware")


def explain(evidence: Evidence) -> Iterator[Finding]:
    """One finding a host: a GPU that one whole listing lacks and another has, or that NVML misses."""
    for host in evidence.hosts:
        listings: dict[str, list[Event]] = {}
        for event in evidence.seen("lspci.device", host=host):
            if not event.data.get("cut_out"):
                listings.setdefault(event.lines[0].source, []).append(event)
        whole = [found for found in listings.values() if _others(found) >= _WHOLE_LISTING]
        if not whole:
            continue
        # Files come in the order of their names, which tells nothing of before and after.
        lacking = [{event.device for event in found} for found in whole]
        seen = {event.device: event for found in listings.values() for event in found if _is_gpu(event)}
        gone = [event for device, event in seen.items() if any(device not in known for known in lacking)]
        none = evidence.open("nvml.no_devices", "cuda.no_device", host=host)
        if not gone and (any(_is_gpu(event) for event in whole[-1]) or not none):
            continue
        names = listed(sorted(event.device for event in gone))
        yield Finding(
            layer="firmware_pcie",
            severity="critical",
            device=gone[0].device if len(gone) == 1 else "",
            summary=f"{plural(len(gone), 'GPU')} vanished from the bus: {names}"
            if gone
            else "the bus has no GPU",
            why=(
                (
                    f"One listing of the bus has {names}, another whole one does not. "
                    if gone
                    else "NVML finds no GPU, and a whole listing of the bus has none either. "
                )
                + "No Xid and no message of the kernel goes with it; silence is not health."
            ),
            events=(*gone, *none) if gone or none else tuple(whole[-1][:1]),
            action="drain",
            then=_THEN,
            count=max(1, len(gone)),
        )


def _others(listing: list[Event]) -> int:
    return sum(event.data.get("vendor") != "nvidia" for event in listing)


def _is_gpu(event: Event) -> bool:
    return event.data.get("vendor") == "nvidia" and str(event.data.get("class_name", "")).startswith(
        ("VGA", "3D", "Display")
    )


RULE = Rule(id="gpu_vanished", rank=12, explain=explain)
