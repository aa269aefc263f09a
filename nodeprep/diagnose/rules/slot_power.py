"""A slot gives a card less power than the card asks for."""

from __future__ import annotations

from collections.abc import Iterator

from nodeprep.diagnose.evidence import Evidence
from nodeprep.diagnose.rule import Finding, Rule
from nodeprep.diagnose.rules._words import times, total


def explain(evidence: Evidence) -> Iterator[Finding]:
    """One finding a device."""
    for _, device, events in evidence.by_device(evidence.open("pcie.slot_power_low")):
        watts = str(events[-1].data["watts"])
        yield Finding(
            layer="hardware",
            severity="warning",
            device=device,
            summary=f"the slot of {device} gives too little power" + (f" ({watts} W)" if watts else ""),
            why=(
                f"The card's own firmware told it {times(total(events))}. Slot, riser or power supply, or "
                "the slot's power limit that the board's firmware announces, is less than the card needs; "
                "under load it slows down or its ports go down."
            ),
            events=tuple(events),
            action="run_diagnostics",
            then=("inspect_hardware", "check_slot_and_bios_settings", "check_power_supply"),
            count=total(events),
        )


RULE = Rule(id="slot_power", rank=82, explain=explain)
