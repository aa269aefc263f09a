"""Links as lspci and nvidia-smi show them: slow when idle is right, narrow is not."""

from __future__ import annotations

from collections.abc import Iterator

from nodeprep.diagnose.event import Event
from nodeprep.diagnose.evidence import Evidence
from nodeprep.diagnose.rule import Finding, Rule

_BUSY_STATES = ("P0", "P1", "P2")
# Source: an idle GPU of the data centre draws less than a third of its limit; under load it draws most of it.
_BUSY_SHARE = 0.5


def explain(evidence: Evidence) -> Iterator[Finding]:
    """One finding a GPU whose link is below what it can."""
    for host in evidence.hosts:
        for _, device, events in evidence.by_device(_listed(evidence, host)):
            narrow = [event for event in events if _narrow(event)]
            slow = [event for event in events if _slow(event)]
            if narrow:
                lanes = narrow[0].data["link_width_lanes"]
                could = narrow[0].data.get("link_cap_width_lanes") or narrow[0].data.get(
                    "link_width_max_lanes"
                )
                yield Finding(
                    layer="firmware_pcie",
                    severity="warning",
                    device=device,
                    summary=f"link of {_named(device)} has {lanes} of {could} lanes",
                    why=(
                        "A device saves power by a lower speed, not by fewer lanes: lanes are missing "
                        "in slot, riser or cable, or "
                        "the slot is built so."
                    ),
                    events=tuple(narrow),
                    action="run_diagnostics",
                    then=("compare_with_siblings", "reseat_card_and_riser", "check_slot_and_bios_settings"),
                    count=1,
                )
            elif slow:
                yield _slow_link(evidence, host, device, slow)


def _named(device: str) -> str:
    return device or "a device that the listing does not name"


def _listed(evidence: Evidence, host: str) -> list[Event]:
    return [
        event
        for event in evidence.open("lspci.device", "smi.gpu", host=host)
        if event.kind == "smi.gpu" or event.data.get("vendor") == "nvidia" or event.data.get("cut_out")
        if event.device.endswith(".0") or event.data.get("cut_out")
    ]


def _narrow(event: Event) -> bool:
    lanes = int(event.data.get("link_width_lanes", 0))
    could = int(event.data.get("link_cap_width_lanes") or event.data.get("link_width_max_lanes") or 0)
    return 0 < lanes < could


def _slow(event: Event) -> bool:
    if event.data.get("speed_downgraded"):
        return True
    gen, best = event.data.get("link_gen"), event.data.get("link_gen_max")
    return bool(gen and best and gen < best)


def _slow_link(evidence: Evidence, host: str, device: str, events: list[Event]) -> Finding:
    states = evidence.seen("smi.gpu", host=host, device=device)
    busy = any(
        state.data.get("performance_state") in _BUSY_STATES
        and float(state.data.get("power_draw_w", 0))
        > _BUSY_SHARE * float(state.data.get("power_limit_w", 1e9))
        for state in states
    )
    idle = any(str(state.data.get("performance_state", "")) not in ("", *_BUSY_STATES) for state in states)
    state = (
        "while the GPU draws power as under load"
        if busy
        else "while the GPU is idle"
        if idle
        else "at a moment of unknown load"
    )
    return Finding(
        layer="firmware_pcie",
        severity="warning" if busy else "info",
        device=device,
        summary=f"link of {_named(device)} is below its best speed {state}",
        why=(
            "Under load the link should have gone up."
            if busy
            else "An idle GPU lets its link fall to save power, and the width is full. Only a link "
            "that stays there under load is "
            "a fault."
        ),
        events=(*events, *(state for state in states if state not in events)),
        action="run_diagnostics" if busy else "observe",
        then=("measure_link_under_load",)
        if not busy
        else ("measure_link_under_load", "reseat_card_and_riser"),
        count=1,
    )


RULE = Rule(id="link_state", rank=63, explain=explain)
