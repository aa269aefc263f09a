"""The values one knob needs, before it is known what other knobs do to them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from nodeprep.bmc.bios.choice import NAME, NotOffered
from nodeprep.bmc.bios.knob import BiosKnob
from nodeprep.bmc.bios.match import GLOBAL, listed
from nodeprep.bmc.bios.over import over_slots
from nodeprep.bmc.bios.part import Part, part_of
from nodeprep.bmc.bios.resolve import Ambiguous, Context, Found, Resolved, Unsupported, present_match, resolve
from nodeprep.bmc.bios.wanted import Wanted
from nodeprep.bmc.redfish.registry import Scalar
from nodeprep.model.bios import BiosCandidate, BiosKnobPlan, BiosSetting, KnobStatus


@dataclass(frozen=True, slots=True)
class Draft:
    """A knob with a value for each of its attributes."""

    knob: BiosKnob
    wanted: Wanted
    parts: tuple[Part, ...]
    notes: tuple[str, ...] = ()
    risks: tuple[str, ...] = field(default=())

    @property
    def to_write(self) -> dict[str, Scalar]:
        """Attributes that are to change, and their values."""
        return {part.found.name: part.target for part in self.parts if not part.is_met}


def ended(
    knob: BiosKnob,
    wanted: Wanted,
    status: KnobStatus,
    reason: str,
    *,
    risks: tuple[str, ...] = (),
    attributes: tuple[BiosSetting, ...] = (),
    candidates: tuple[BiosCandidate, ...] = (),
) -> BiosKnobPlan:
    """What the plan says of a knob."""
    return BiosKnobPlan(
        knob=knob.id,
        wanted=wanted.value,
        status=status,
        reason=reason,
        risks=risks,
        attributes=attributes,
        candidates=candidates,
        slots=wanted.slots,
    )


def candidate(found: Found, context: Context) -> BiosCandidate:
    """An attribute as it is listed for a choice."""
    return BiosCandidate(
        name=found.name,
        display_name=found.attribute.display_name,
        menu_path=found.attribute.menu_path,
        scope=found.scope,
        current=context.view.current.get(found.name),
    )


def draft(knob: BiosKnob, wanted: Wanted, context: Context) -> Draft | BiosKnobPlan:
    """A value for each attribute of a knob, or the end of it."""
    resolved = resolve(knob, context, wanted.slots)
    if isinstance(resolved, Ambiguous):
        listed_ones = tuple(candidate(entry, context) for entry in resolved.candidates)
        return ended(knob, wanted, "ambiguous", resolved.reason, candidates=listed_ones)
    if isinstance(resolved, Unsupported):
        return _absent(knob, wanted, resolved.reason, context)
    return _chosen(knob, wanted, resolved, context)


def grouped(reasons: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """Reasons with the attributes they are about, each reason once.

    Args:
        reasons: Pairs of an attribute's name and a reason in which NAME stands for it.
    """
    names: dict[str, list[str]] = {}
    for name, reason in reasons:
        names.setdefault(reason, []).append(name)
    return tuple(reason.replace(NAME, listed(own)) for reason, own in names.items())


def _chosen(knob: BiosKnob, wanted: Wanted, resolved: Resolved, context: Context) -> Draft | BiosKnobPlan:
    parts: list[Part] = []
    missing: list[tuple[str, str]] = []
    for found in resolved.chosen:
        part = part_of(knob, wanted.value, found, context)
        if isinstance(part, NotOffered):
            missing.append((found.name, part.reason))
        else:
            parts.append(part)
    if missing:
        # Some slots that cannot have the value are no reason to leave them out silently.
        status: KnobStatus = "refused" if parts else "unsupported"
        return ended(knob, wanted, status, "; ".join((*grouped(missing), *resolved.notes)))
    over = over_slots(knob, wanted, resolved.over, context)
    if isinstance(over, str):
        return ended(knob, wanted, "refused", over)
    of_vendor = context.vendor.risks.get(f"{knob.id}={wanted.value}", ())
    return Draft(knob, wanted, (*over, *parts), resolved.notes, (*resolved.risks, *of_vendor))


def _absent(knob: BiosKnob, wanted: Wanted, reason: str, context: Context) -> BiosKnobPlan:
    """A knob without attributes of its own. Something wider that is off can leave it nothing to do."""
    wider = None if knob.implied_by is None else next(iter(present_match(knob.implied_by, context)), None)
    if wider is None or wanted.value != "disabled":
        return ended(knob, wanted, "unsupported", reason)
    part = part_of(knob, "disabled", Found(wider, GLOBAL), context)
    if isinstance(part, Part) and part.is_met:
        return ended(
            knob,
            wanted,
            "ok",
            "there is no attribute of its own, and nothing is left to do: "
            f"{wider.name} is {part.current}, and a package sleeps only when all its cores do",
            attributes=(part.setting(),),
        )
    more = f"{wider.name} of all cores, switched off, would do; it takes turbo along and is left to you"
    return ended(knob, wanted, "unsupported", f"{reason}. {more}")
