"""What a BIOS is set to now, by knob and attribute by attribute."""

from __future__ import annotations

from nodeprep.bmc.bios.attributes import BiosView
from nodeprep.bmc.bios.draft import candidate
from nodeprep.bmc.bios.knob import BiosKnob, knobs
from nodeprep.bmc.bios.part import meaning_now
from nodeprep.bmc.bios.resolve import Ambiguous, Context, Unsupported, context_of, resolve
from nodeprep.bmc.redfish.registry import Attribute
from nodeprep.bmc.redfish.values import spelt
from nodeprep.model.bios import BiosAttribute, BiosKnobState, BiosMachine, BiosState


def show(machine: BiosMachine, view: BiosView) -> BiosState:
    """The present state of one BIOS."""
    context = context_of(machine.vendor, view)
    return BiosState(
        bmc=machine,
        registry=view.registry_state,
        knobs=tuple(_knob(knob, context) for knob in knobs().values()),
        attributes=tuple(_attribute(entry, context) for entry in view.present),
    )


def _knob(knob: BiosKnob, context: Context) -> BiosKnobState:
    resolved = resolve(knob, context)
    if isinstance(resolved, Unsupported):
        return BiosKnobState(knob=knob.id, found=False, value="", reason=resolved.reason, settings=())
    if isinstance(resolved, Ambiguous):
        settings = tuple(candidate(entry, context) for entry in resolved.candidates)
        return BiosKnobState(knob=knob.id, found=False, value="", reason=resolved.reason, settings=settings)
    values = {
        meaning_now(knob, entry, context.view.current.get(entry.name), context) for entry in resolved.chosen
    }
    return BiosKnobState(
        knob=knob.id,
        found=True,
        value=values.pop() if len(values) == 1 else "mixed",
        reason="; ".join(resolved.notes),
        settings=tuple(candidate(entry, context) for entry in (*resolved.over, *resolved.chosen)),
    )


def _attribute(entry: Attribute, context: Context) -> BiosAttribute:
    current = context.view.current[entry.name]
    return BiosAttribute(
        name=entry.name,
        current=current,
        pending=context.view.staged(entry.name),
        display_name=entry.display_name,
        menu_path=entry.menu_path,
        type=entry.type,
        values=tuple(str(spelt(value, entry, current, context.usual)) for value in entry.values),
        writable=not (entry.read_only or entry.hidden or entry.gray_out),
    )
