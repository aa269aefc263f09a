"""Attributes for all slots that stand over those of single ones: `MaxPcieSpeed` over `PciSlot3LinkSpeed`."""

from __future__ import annotations

from collections.abc import Sequence

from nodeprep.bmc.bios.choice import NAME, Choice, NotOffered
from nodeprep.bmc.bios.knob import BiosKnob
from nodeprep.bmc.bios.meanings import AUTO, MAXIMUM, word_of
from nodeprep.bmc.bios.part import Part, meaning_now, part_of
from nodeprep.bmc.bios.resolve import Context, Found
from nodeprep.bmc.bios.wanted import Wanted
from nodeprep.bmc.redfish.registry import Scalar
from nodeprep.bmc.redfish.values import spelt

_PER_PORT = frozenset({"perportctrl", "perportcontrol", "perport"})


def over_slots(
    knob: BiosKnob, wanted: Wanted, over: Sequence[Found], context: Context
) -> tuple[Part, ...] | str:
    """What the attributes for all slots must be so that those of single slots count.

    Returns:
        Those to be listed or changed; or why that cannot be.
    """
    parts: list[Part] = []
    for found in over:
        current, staged = context.view.current.get(found.name), context.view.staged(found.name)
        free = _hands_over(found, current, context)
        in_the_way = _is_in_the_way(knob, wanted.value, found, context)
        if in_the_way and wanted.slots:
            return (
                f"{found.name} is {current if staged is None else staged} and holds for all slots: "
                f"{f'set it to {free.value}' if free else 'change it'} first, or leave slot= out"
            )
        if free is not None and not wanted.slots:
            parts.append(Part(found, free, current, staged))
        elif in_the_way:
            part = part_of(knob, wanted.value, found, context)
            if isinstance(part, NotOffered):
                return part.reason.replace(NAME, found.name)
            parts.append(part)
    return tuple(parts)


def _hands_over(found: Found, current: Scalar, context: Context) -> Choice | None:
    """The value that leaves the speed to the slots' own attributes, where there is such a word (HPE)."""
    for value in found.attribute.values:
        if {word_of(value.name), word_of(value.display)} & _PER_PORT:
            written = spelt(value, found.attribute, current, context.usual)
            return Choice(written, (written,), f"the slots' own values count only while {NAME} is {written}")
    return None


def _is_in_the_way(knob: BiosKnob, wanted: str, found: Found, context: Context) -> bool:
    staged = context.view.staged(found.name)
    effective = context.view.current.get(found.name) if staged is None else staged
    if knob.is_switch:
        now = meaning_now(knob, found, effective, context)
        return wanted == "enabled" and now == "disabled"
    per_port = any(
        {word_of(value.name), word_of(value.display)} & _PER_PORT for value in found.attribute.values
    )
    if per_port:
        return word_of(effective) not in _PER_PORT and str(effective) not in _spellings(found)
    now = meaning_now(knob, found, effective, context)
    if now in {"", AUTO, MAXIMUM}:
        return False
    return wanted == AUTO or int(now) < int(wanted)


def _spellings(found: Found) -> set[str]:
    """How the hand-over value of an attribute can be reported."""
    fitting = [
        value for value in found.attribute.values if {word_of(value.name), word_of(value.display)} & _PER_PORT
    ]
    return {text for value in fitting for text in (value.name, value.display)}
