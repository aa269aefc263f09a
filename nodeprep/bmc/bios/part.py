"""One attribute of a knob: the value it should have, and what its present one means."""

from __future__ import annotations

from dataclasses import dataclass

from nodeprep.bmc.bios.choice import Choice, NotOffered, Source, choose, generation_meant, meaning
from nodeprep.bmc.bios.knob import BiosKnob
from nodeprep.bmc.bios.meanings import generation_of
from nodeprep.bmc.bios.resolve import Context, Found
from nodeprep.bmc.redfish.registry import Scalar
from nodeprep.bmc.redfish.values import value_of
from nodeprep.model.bios import BiosSetting


@dataclass(frozen=True, slots=True)
class Part:
    """One attribute of a draft and what it should be."""

    found: Found
    choice: Choice
    current: Scalar
    staged: Scalar

    @property
    def target(self) -> Scalar:
        """The value to have: one in place that is as good stays."""
        if self.staged is not None and self.choice.is_met_by(self.staged):
            return self.staged
        return self.current if self.choice.is_met_by(self.current) else self.choice.value

    @property
    def is_met(self) -> bool:
        """It is so now, and stays so after the next reset."""
        return self.choice.is_met_by(self.current) and (
            self.staged is None or self.choice.is_met_by(self.staged)
        )

    @property
    def is_staged(self) -> bool:
        """It will be so after the next reset without another write."""
        return self.staged is not None and self.choice.is_met_by(self.staged)

    def setting(self, phase: int = 1) -> BiosSetting:
        """As the plan lists it."""
        return BiosSetting(
            name=self.found.name,
            current=self.current,
            pending=self.staged,
            value=self.target,
            scope=self.found.scope,
            display_name=self.found.attribute.display_name,
            phase=phase,
        )


def part_of(knob: BiosKnob, value: str, found: Found, context: Context) -> Part | NotOffered:
    """The value of one attribute, or why it has none for what is wanted."""
    current, staged = context.view.current.get(found.name), context.view.staged(found.name)
    choice = choose(knob, value, source_of(knob, found, current, context))
    return choice if isinstance(choice, NotOffered) else Part(found, choice, current, staged)


def source_of(knob: BiosKnob, found: Found, current: Scalar, context: Context) -> Source:
    """What the value of an attribute is chosen from."""
    vendor = context.vendor
    codes = vendor.codes.get(knob.id, {})
    return Source(found.attribute, current, context.usual, codes, vendor.top_is_auto, context.vocabulary)


def meaning_now(knob: BiosKnob, found: Found, reported: Scalar, context: Context) -> str:
    """What a reported value means for a knob; "" when it is none of its values."""
    value = value_of(found.attribute, reported)
    if knob.is_switch:
        if value is not None:
            return meaning(knob, value, found.name) or ""
        return _met_by(knob, found, reported, context)
    what = generation_meant(value) if value is not None else generation_of(str(reported))
    return _met_by(knob, found, reported, context) if what is None else str(what)


def _met_by(knob: BiosKnob, found: Found, reported: Scalar, context: Context) -> str:
    """The wanted value that a reported one would be as good as; "" when there is none."""
    for wanted in knob.values:
        choice = choose(knob, wanted, source_of(knob, found, reported, context))
        if isinstance(choice, Choice) and choice.value == reported:
            return wanted
    return ""
