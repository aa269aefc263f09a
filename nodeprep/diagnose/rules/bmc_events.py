"""What BMC and CPUs say of power, heat and buses when no GPU was lost over it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from nodeprep.diagnose.event import Event
from nodeprep.diagnose.evidence import Evidence
from nodeprep.diagnose.rule import Finding, Rule
from nodeprep.diagnose.rules._words import listed, times, total
from nodeprep.model.diagnosis import Action, Layer, Severity


@dataclass(frozen=True, slots=True)
class _Said:
    """What an entry of the event log means for the node."""

    summary: str
    layer: Layer
    severity: Severity
    action: Action
    then: tuple[str, ...]


_MAX_PLACES = 4
_MEANINGS = {
    "sel.pcie_fatal": _Said(
        "the BMC logged a fatal error of a PCI bus",
        "firmware_pcie",
        "critical",
        "drain",
        ("inspect_hardware", "read_kernel_log"),
    ),
    "sel.pcie_error": _Said(
        "the BMC logged an error of a PCI bus",
        "firmware_pcie",
        "warning",
        "observe",
        ("read_aer_counters", "inspect_hardware"),
    ),
    "host.pci_serr": _Said(
        "the chipset reported a system error of PCI (SERR)",
        "firmware_pcie",
        "error",
        "drain",
        ("read_sel", "inspect_hardware", "read_kernel_log"),
    ),
    "sel.pcie_untrained": _Said(
        "a PCIe link did not train at power-on, and firmware switched it off",
        "firmware_pcie",
        "error",
        "drain",
        ("cold_power_cycle", "reseat_card_and_riser", "replace_cable_or_riser", "compare_with_inventory"),
    ),
    "sel.power_supply": _Said(
        "a power supply failed", "host", "error", "replace_part", ("check_power_supply",)
    ),
    "sel.power_redundancy": _Said(
        "the power supplies are no longer redundant", "host", "warning", "observe", ("check_power_supply",)
    ),
    "sel.temperature": _Said(
        "a temperature passed its critical limit", "host", "error", "drain", ("check_cooling",)
    ),
    "host.cpu_hot": _Said(
        "the CPUs ran too hot and slowed down", "host", "warning", "observe", ("check_cooling",)
    ),
    "sel.fan": _Said("a fan failed", "host", "error", "replace_part", ("check_cooling",)),
}


def explain(evidence: Evidence) -> Iterator[Finding]:
    """One finding a host and kind of entry."""
    for host in evidence.hosts:
        for kind, said in _MEANINGS.items():
            events = evidence.open(kind, host=host)
            if events and _ended(evidence, host, events):
                yield _over(said, events)
            elif events:
                yield Finding(
                    layer=said.layer,
                    severity=said.severity,
                    device=next((event.device for event in events if event.device), ""),
                    summary=said.summary + _where(events),
                    why=f"Logged {times(total(events))}; no GPU was lost with it in this log.",
                    events=tuple(events),
                    action=said.action,
                    then=said.then,
                    count=total(events),
                )


def _ended(evidence: Evidence, host: str, events: Sequence[Event]) -> bool:
    """Whether each sensor took back what it said, as one does when the power returns."""
    cleared = evidence.seen("sel.cleared", host=host)
    return all(
        event.data.get("sensor")
        and any(
            each.data["sensor"] == event.data["sensor"] and evidence.position(each) > evidence.position(event)
            for each in cleared
        )
        for event in events
    )


def _over(said: _Said, events: Sequence[Event]) -> Finding:
    return Finding(
        layer=said.layer,
        severity="warning",
        summary=f"{said.summary}{_where(events)}; it is over",
        why=f"Logged {times(total(events))}, and taken back each time. No GPU was lost with it in this log.",
        events=tuple(events),
        action="observe",
        then=("read_sel", *said.then),
        count=total(events),
    )


def _where(events: Sequence[Event]) -> str:
    named = (
        event.device or (f"place {event.data['place']}" if event.data.get("place") else "")
        for event in events
    )
    places = [place for place in dict.fromkeys(named) if place]
    return f" ({listed(places[:_MAX_PLACES])})" if places else ""


RULE = Rule(id="bmc_events", rank=69, explain=explain)
