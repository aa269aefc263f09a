"""Which value of an attribute is what a knob wants, or why none is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from nodeprep.bmc.bios.knob import BiosKnob
from nodeprep.bmc.bios.match import key, listed
from nodeprep.bmc.bios.meanings import (
    AUTO,
    AUTO_WORDS,
    MAXIMUM,
    OFF_WORDS,
    ON_WORDS,
    SWITCH_SPELLINGS,
    Generation,
    generation_of,
    opposite_spelling,
    respelt,
    word_of,
)
from nodeprep.bmc.redfish.registry import Attribute, Scalar, Value
from nodeprep.bmc.redfish.values import Spelling, spelt

NAME = "{name}"
"""Stands in a reason for the attributes it is about; slots mostly share theirs."""

_DIGITS = "0123456789"


@dataclass(frozen=True, slots=True)
class Choice:
    """The value to write.

    Attributes:
        value: As the BMC takes it.
        accepted: All values that are as good; one of them in place is left alone.
        reason: Why this one, where a reader would not expect it.
    """

    value: Scalar
    accepted: tuple[Scalar, ...]
    reason: str = ""

    def is_met_by(self, reported: Scalar) -> bool:
        """Whether a reported value is as good as the one to write."""
        return any(type(reported) is type(value) and reported == value for value in self.accepted)


@dataclass(frozen=True, slots=True)
class NotOffered:
    """No value of the attribute is what is wanted; the reason names those it has."""

    reason: str


@dataclass(frozen=True, slots=True)
class Source:
    """What a choice is made from.

    Attributes:
        codes: By wanted value: integers a vendor uses without telling what they mean.
        top_is_auto: The vendor lists no value for the highest generation of a slot.
        vocabulary: How often this BIOS reports each value, where no registry lists any.
    """

    attribute: Attribute
    current: Scalar
    usual: Spelling
    codes: Mapping[str, int]
    top_is_auto: bool = False
    vocabulary: Mapping[Scalar, int] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The attribute's name."""
        return self.attribute.name

    def written(self, value: Value) -> Scalar:
        """A value of the enumeration as it goes over the wire."""
        return spelt(value, self.attribute, self.current, self.usual)

    def offers(self) -> str:
        """The values of the enumeration, for people."""
        return listed([value.display or value.name for value in self.attribute.values], most=8)


def choose(knob: BiosKnob, wanted: str, source: Source) -> Choice | NotOffered:
    """The value of an attribute that is what a knob wants."""
    if not source.attribute.values:
        return _without_list(knob, wanted, source)
    if knob.is_switch:
        return _switch(knob, wanted, source)
    return _generation(wanted, source)


def meaning(knob: BiosKnob, value: Value, attribute_name: str) -> str | None:
    """What a value of an enumeration means for a switch: enabled, disabled, auto or none of them."""
    for text in _texts(value):
        word = word_of(text, attribute_name)
        if word in _on(knob):
            return "enabled"
        if word in OFF_WORDS or word in knob.off:
            return "disabled"
        if word in AUTO_WORDS:
            return AUTO
    return None


def generation_meant(value: Value) -> Generation | None:
    """The PCIe generation a value of an enumeration means; None when name and display name differ."""
    found = {
        generation
        for generation in (generation_of(text) for text in _texts(value))
        if isinstance(generation, int)
    }
    if found:
        return found.pop() if len(found) == 1 else None
    return next((generation for text in _texts(value) if (generation := generation_of(text))), None)


def _texts(value: Value) -> tuple[str, ...]:
    """The texts that say what a value means. A number beside words is a place in the list, no meaning."""
    if not value.display:
        return (value.name,)
    if value.name and all(character in _DIGITS for character in value.name):
        return (value.display,)
    return (value.display, value.name)


def _on(knob: BiosKnob) -> tuple[str, ...]:
    return (*sorted(ON_WORDS), *knob.on)


def _switch(knob: BiosKnob, wanted: str, source: Source) -> Choice | NotOffered:
    meant = [(value, meaning(knob, value, source.name)) for value in source.attribute.values]
    fitting = [value for value, what in meant if what == wanted]
    if fitting:
        return _chosen(sorted(fitting, key=lambda value: _preference(knob, value, source)), source)
    automatic = [value for value, what in meant if what == AUTO]
    can_be_off = any(what == "disabled" for _, what in meant)
    if wanted == "enabled" and automatic and (knob.auto_is_on or can_be_off):
        return _chosen(automatic, source, f"{NAME} knows no plain Enabled: Auto leaves it on where it works")
    return NotOffered(f"{NAME} offers {source.offers()}: none of them is {wanted}")


def _preference(knob: BiosKnob, value: Value, source: Source) -> int:
    words = [word_of(text, source.name) for text in _texts(value)]
    order = (*_on(knob), *knob.off)
    return min((order.index(word) for word in words if word in order), default=0)


def _chosen(values: list[Value], source: Source, reason: str = "") -> Choice:
    written = tuple(source.written(value) for value in values)
    best = source.current if source.current in written else written[0]
    return Choice(best, written, reason)


def _generation(wanted: str, source: Source) -> Choice | NotOffered:
    by_meaning: dict[Generation, list[Value]] = {}
    for value in source.attribute.values:
        what = generation_meant(value)
        if what is not None:
            by_meaning.setdefault(what, []).append(value)
    automatic, top_word = by_meaning.get(AUTO, []), by_meaning.get(MAXIMUM, [])
    listed_ones = sorted(what for what in by_meaning if isinstance(what, int))
    if wanted == AUTO:
        free = automatic or top_word
        return _chosen(free, source) if free else NotOffered(f"{NAME} offers {source.offers()}: no Auto")
    generation = int(wanted)
    if generation in by_meaning:
        return _chosen(by_meaning[generation], source)
    if not listed_ones or generation < listed_ones[-1]:
        return NotOffered(f"{NAME} offers {source.offers()}: generation {generation} is not among them")
    stops = f"the values of {NAME} stop at generation {listed_ones[-1]}"
    if automatic:
        return _chosen(automatic, source, f"{stops}: {_why_auto(generation, listed_ones[-1], source)}")
    if top_word:
        return _chosen(top_word, source, f"{stops}: its highest is the nearest to generation {generation}")
    return _chosen(
        by_meaning[listed_ones[-1]], source, f"{stops}, which keeps below generation {generation} as well"
    )


def _why_auto(generation: int, last: int, source: Source) -> str:
    if source.top_is_auto:
        top = f"its highest, generation {last + 1}, is Auto"
        return top if generation == last + 1 else f"{top}, and it cannot exceed that"
    return f"Auto lets it run at its highest, see that this is not above generation {generation} on the host"


def _without_list(knob: BiosKnob, wanted: str, source: Source) -> Choice | NotOffered:
    current = source.current
    if isinstance(current, bool) or source.attribute.type == "Boolean":
        if knob.is_switch:
            return _only(wanted == "enabled")
    elif isinstance(current, int):
        return _integer(knob, wanted, current, source)
    elif isinstance(current, str):
        if knob.is_switch:
            text = _switch_spelling(knob, current, wanted, source)
        elif wanted == AUTO:
            text = current if generation_of(current) == AUTO else None
        else:
            text = respelt(current, int(wanted))
        if text is not None:
            return _only(text, f"the BMC lists no values of {NAME}: spelt as its other values are")
    return NotOffered(
        f"the BMC lists no values of {NAME}, and its present value {current!r} does not show how "
        f"{wanted} is spelt"
    )


def _switch_spelling(knob: BiosKnob, current: str, wanted: str, source: Source) -> str | None:
    on = wanted == "enabled"
    if word_of(current, source.name) in (knob.on if on else knob.off):
        return current
    spelling = opposite_spelling(current, on=on)
    if spelling is None and key(current) in AUTO_WORDS:
        used = max(SWITCH_SPELLINGS, key=lambda pair: sum(source.vocabulary.get(word, 0) for word in pair))
        if any(word in source.vocabulary for word in used):
            return used[0] if on else used[1]
    return spelling


def _integer(knob: BiosKnob, wanted: str, current: int, source: Source) -> Choice | NotOffered:
    coded = f"the BMC lists no values of {NAME}"
    if wanted in source.codes:
        return _only(source.codes[wanted], f"{coded}: its code for {wanted} is known from the vendor")
    if not knob.is_switch and source.codes:
        free = source.codes.get(AUTO)
        known = [int(name) for name in source.codes if name.isdigit()]
        if free is not None and known and int(wanted) > max(known):
            return _only(free, f"{coded}, and its codes stop at generation {max(known)}: Auto is its highest")
    if knob.is_switch and knob.binary and current in (0, 1):
        return _only(int(wanted == "enabled"), f"{coded}: taken as 0 for off and 1 for on")
    return NotOffered(f"{coded}, and what {wanted} is among its numbers (now {current}) is not known")


def _only(value: Scalar, reason: str = "") -> Choice:
    return Choice(value, (value,), reason)
