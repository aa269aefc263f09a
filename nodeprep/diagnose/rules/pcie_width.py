"""Links that are slower or narrower than a device could have them."""

from __future__ import annotations

from collections.abc import Iterator

from nodeprep.diagnose.event import Event
from nodeprep.diagnose.evidence import Evidence
from nodeprep.diagnose.rule import Finding, Rule
from nodeprep.diagnose.rules._words import listed, plural


def explain(evidence: Evidence) -> Iterator[Finding]:
    """Bandwidth notices by limiting port; links that the kernel trained down."""
    for host in evidence.hosts:
        by_limiter: dict[tuple[str, float, int], list[Event]] = {}
        gpus = evidence.gpus(host)
        for event in evidence.open("link.bandwidth_limited", host=host):
            key = str(event.data["limiter"]), float(event.data["speed_gt_s"]), int(event.data["lanes"])
            by_limiter.setdefault(key, []).append(event)
        for (limiter, speed, lanes), events in by_limiter.items():
            yield _limited(limiter, speed, lanes, events, gpus)
        for _, device, events in evidence.by_device(
            evidence.open(
                "link.retrained_at_gen1", "link.retrain_failed", "link.restriction_removed", host=host
            )
        ):
            yield _retrained(device, events)


def _limited(limiter: str, speed: float, lanes: int, events: list[Event], gpus: tuple[str, ...]) -> Finding:
    first = events[0]
    devices = list(dict.fromkeys(event.device for event in events))
    narrow = lanes < int(first.data["could_lanes"]) and any(device in gpus for device in devices)
    own = limiter in devices
    return Finding(
        layer="firmware_pcie",
        severity="warning" if narrow and lanes <= int(first.data["could_lanes"]) // 2 and own else "info",
        device=devices[0] if len(devices) == 1 else "",
        summary=(
            f"{listed(devices)} could have {first.data['could_gbit_s']:g} Gb/s and has "
            f"{first.data['have_gbit_s']:g}: "
            f"the link at {limiter} is {speed:g} GT/s x{lanes}"
        ),
        why=(
            f"The kernel names the narrow place at enumeration, once: {limiter}, "
            + ("the device's own link" if own else "a port above it, not the device itself")
            + f". So it is for {plural(len(devices), 'device')} below it; if all siblings are like "
            "that, it is "
            "the platform's design."
        ),
        events=tuple(events),
        action="observe",
        then=("compare_with_siblings", "measure_link_under_load", "check_slot_and_bios_settings"),
        root_device=limiter,
        count=len(devices),
    )


def _retrained(device: str, events: list[Event]) -> Finding:
    kinds = {event.kind for event in events}
    mended = kinds & {"link.restriction_removed"} and "link.retrain_failed" not in kinds
    return Finding(
        layer="firmware_pcie",
        severity="info" if mended else "warning",
        device=device,
        summary=f"the kernel trained the link below {device} anew at 2.5 GT/s"
        + (" and gave the speed back" if mended else ""),
        why=(
            "The link did not come up as it should, and the kernel's work-around for broken devices "
            "limits its speed. "
            + (
                "The limit was taken off again."
                if mended
                else "Nothing shows that the limit was taken off again."
            )
        ),
        events=tuple(events),
        action="observe" if mended else "run_diagnostics",
        then=("measure_link_under_load", "reseat_card_and_riser"),
    )


RULE = Rule(id="pcie_width", rank=62, explain=explain)
