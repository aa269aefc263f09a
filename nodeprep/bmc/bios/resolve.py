"""From a knob to the attributes of one BIOS that are it: some, none, or too many to choose from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from nodeprep.bmc.bios.attributes import BiosView
from nodeprep.bmc.bios.choice import meaning
from nodeprep.bmc.bios.knob import BiosKnob
from nodeprep.bmc.bios.match import GLOBAL, Match, Matcher, listed, natural, same_scope
from nodeprep.bmc.bios.meanings import OFF_WORDS, ON_WORDS, generation_of, word_of
from nodeprep.bmc.bios.vendor import Vendor, vendor_of
from nodeprep.bmc.redfish.registry import Attribute, Scalar
from nodeprep.bmc.redfish.values import Spelling, usual_spelling


@dataclass(frozen=True, slots=True)
class Context:
    """A BIOS, with all that is told once for it."""

    view: BiosView
    vendor: Vendor
    usual: Spelling
    vocabulary: Mapping[Scalar, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Found:
    """An attribute that is what a knob is about."""

    attribute: Attribute
    scope: str
    rank: int = 0

    @property
    def name(self) -> str:
        """The attribute's name."""
        return self.attribute.name


@dataclass(frozen=True, slots=True)
class Resolved:
    """The attributes of a knob.

    Attributes:
        over: Attributes for all slots that stand over those of single ones, when those were taken.
        notes: Why these.
        risks: What they do besides.
    """

    chosen: tuple[Found, ...]
    over: tuple[Found, ...] = ()
    notes: tuple[str, ...] = ()
    risks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Unsupported:
    """This BMC has no such attribute."""

    reason: str


@dataclass(frozen=True, slots=True)
class Ambiguous:
    """Several attributes could be meant."""

    reason: str
    candidates: tuple[Found, ...]


def context_of(maker: str, view: BiosView) -> Context:
    """What is told once for a BIOS.

    Args:
        maker: What the machine or its BMC calls its maker.
    """
    vocabulary = Counter(view.current.values()) if view.registry.absent else {}
    return Context(view, vendor_of(maker), usual_spelling(view.registry, view.current), vocabulary)


def resolve(
    knob: BiosKnob, context: Context, slots: Sequence[str] = ()
) -> Resolved | Unsupported | Ambiguous:
    """The attributes a knob is on this machine.

    Args:
        slots: Only these; all when empty.
    """
    found, notes = _matching(knob, context)
    if not found:
        return _fallback(knob, context)
    of_slots = tuple(entry for entry in found if entry.scope != GLOBAL)
    if not knob.is_switch:
        off = tuple(entry for entry in of_slots if _is_off(entry, context))
        of_slots = tuple(entry for entry in of_slots if entry not in off)
        if off:
            names = listed([entry.name for entry in off])
            notes = (*notes, f"left as it is, since its link is switched off: {names}")
            if not of_slots or any(same_scope(entry.scope, slot) for entry in off for slot in slots):
                return Unsupported(f"{names}: switched off, so there is no link to limit")
    of_all = tuple(entry for entry in found if entry.scope == GLOBAL)
    if slots:
        return _limited(of_slots, of_all, slots, notes)
    if of_slots and (knob.prefer == "slots" or not of_all):
        return Resolved(of_slots, over=of_all, notes=notes)
    best = tuple(entry for entry in of_all if entry.rank == of_all[0].rank)
    together = context.vendor.together.get(knob.id, ())
    if len(best) > 1 and {entry.name for entry in best} != set(together):
        names = listed([entry.name for entry in best])
        return Ambiguous(f"{names} could each be it: nothing was chosen", best)
    if len(best) > 1:
        notes = (*notes, f"{listed([entry.name for entry in best])} are one setting in two places")
    return Resolved(best, notes=notes)


def present_match(matcher: Matcher, context: Context) -> Iterable[Attribute]:
    """Attributes of this machine a matcher takes."""
    return (entry for entry in context.view.present if matcher(entry))


def _matching(knob: BiosKnob, context: Context) -> tuple[tuple[Found, ...], tuple[str, ...]]:
    """Attributes of this machine, the best first, and what to say about them."""
    matched: list[tuple[Attribute, Match]] = []
    for entry in context.view.present:
        match = knob.matcher(entry)
        if match is not None and _suits(knob, entry, context.view.current[entry.name]):
            matched.append((entry, match))
    seen = [(entry, match) for entry, match in matched if not entry.hidden] or matched
    best_first = sorted(seen, key=lambda pair: (pair[1].rank, natural(pair[1].scope)))
    notes = {match.note: None for _, match in best_first[:1] if match.note}
    return tuple(Found(entry, match.scope, match.rank) for entry, match in best_first), tuple(notes)


def _is_off(found: Found, context: Context) -> bool:
    """The link of a slot is off: a generation would switch it on.

    Source: BIOS of Cisco UCS C240 M5, PcieSlotFrontNvme1LinkSpeed: Disabled.
    """
    staged = context.view.staged(found.name)
    value = context.view.current[found.name] if staged is None else staged
    return isinstance(value, str) and word_of(value, found.name) in OFF_WORDS


def _suits(knob: BiosKnob, attribute: Attribute, current: Scalar) -> bool:
    """Whether the values are those of such a knob. The matcher of generations looks for itself."""
    if not knob.is_switch:
        # A text that only tells a speed ("x16 Gen4") has no list of values and cannot be written.
        told = isinstance(current, str) and generation_of(current) is not None and not attribute.read_only
        return bool(attribute.values) or told or (isinstance(current, int) and not isinstance(current, bool))
    if attribute.values:
        meant = {meaning(knob, value, attribute.name) for value in attribute.values}
        return bool(meant & {"enabled", "disabled"})
    if isinstance(current, int) or attribute.type == "Boolean":
        return True
    words = {*ON_WORDS, *OFF_WORDS, *knob.on, *knob.off, "auto"}
    return isinstance(current, str) and word_of(current, attribute.name) in words


def _fallback(knob: BiosKnob, context: Context) -> Resolved | Unsupported:
    fallback = context.vendor.fallbacks.get(knob.id)
    if fallback:
        chosen = tuple(Found(entry, GLOBAL) for entry in context.view.present if entry.name in fallback.names)
        if chosen:
            return Resolved(chosen, notes=(fallback.why,), risks=fallback.risks)
    if not context.view.current:
        return Unsupported("the BMC reports no BIOS attributes at all")
    parts = [
        f"none of the {len(context.view.current)} BIOS attributes is it",
        f"Looked for: {knob.matcher.looked_for}",
    ]
    elsewhere = [entry.name for entry in context.view.not_here if knob.matcher(entry)]
    if elsewhere:
        parts.append(f"The registry knows {listed(elsewhere)}, of which this machine reports no value")
    if knob.id in context.vendor.absent:
        parts.append(context.vendor.absent[knob.id])
    if context.view.registry.absent:
        parts.append("The BMC serves no attribute registry, so names were all there was to go by")
    return Unsupported(". ".join(parts))


def _limited(
    of_slots: tuple[Found, ...], of_all: tuple[Found, ...], slots: Sequence[str], notes: tuple[str, ...]
) -> Resolved | Unsupported | Ambiguous:
    if not of_slots:
        names = listed([entry.name for entry in of_all])
        return Unsupported(f"there is no such attribute for single slots; {names} is for all of them")
    chosen: list[Found] = []
    for slot in slots:
        fitting = [entry for entry in of_slots if same_scope(entry.scope, slot)]
        if not fitting:
            there = listed([entry.scope for entry in of_slots], most=30)
            return Unsupported(f"there is no such attribute for slot {slot}; there are: {there}")
        if len(fitting) > 1:
            names = listed([entry.name for entry in fitting])
            return Ambiguous(f"{names} could each be slot {slot}: nothing was chosen", tuple(fitting))
        chosen += fitting
    return Resolved(tuple(chosen), over=of_all, notes=notes)
