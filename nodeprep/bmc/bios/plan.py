"""What would change in one BIOS, and what would not and why. Asks nobody and writes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from nodeprep.bmc.bios.attributes import BiosView
from nodeprep.bmc.bios.draft import Draft, draft, ended, grouped
from nodeprep.bmc.bios.knob import knobs
from nodeprep.bmc.bios.match import GLOBAL
from nodeprep.bmc.bios.part import Part
from nodeprep.bmc.bios.resolve import Context, context_of
from nodeprep.bmc.bios.state import Obstacle, forced, obstacle
from nodeprep.bmc.bios.wanted import Wanted
from nodeprep.bmc.redfish.registry import Scalar
from nodeprep.model.bios import BiosKnobPlan, BiosMachine, BiosPlan, BiosSetting

# In xAPIC mode an APIC id has 8 bits; more CPUs need x2APIC, and that needs the IOMMU's interrupt remapping.
# Source: Intel SDM volume 3, "Local APIC"; help text of HPE's ProcAmdIoVt; linux-kernel, March 2026.
_MOST_CPUS_WITHOUT_IOMMU = 255


@dataclass(frozen=True, slots=True)
class Judged:
    """A draft with what stands in the way of its parts."""

    kept: tuple[Part, ...]
    second_phase: frozenset[str]
    notes: tuple[str, ...]
    refusals: tuple[str, ...]


def plan(
    machine: BiosMachine,
    view: BiosView,
    wanted: Mapping[str, Wanted],
    *,
    logical_cpus: int | None = None,
    blocked_by: tuple[str, ...] = (),
) -> BiosPlan:
    """The plan for one BIOS.

    Args:
        wanted: By knob, from `parse_settings` or `from_policy`.
        logical_cpus: Of the machine; None when the BMC does not say.
        blocked_by: What keeps this BMC from taking any change.

    Raises:
        KeyError: A knob that there is not.
    """
    context = context_of(machine.vendor, view)
    drafts: dict[str, Draft] = {}
    done: dict[str, BiosKnobPlan] = {}
    for name, want in wanted.items():
        drafted = draft(knobs()[name], want, context)
        if isinstance(drafted, Draft):
            drafts[name] = drafted
        else:
            done[name] = drafted
    # A knob that is refused writes nothing, which can free others: until nothing changes any more.
    while True:
        refused = {
            name: entry
            for name, entry in (
                (name, _judge(one, drafts, context, logical_cpus)) for name, one in drafts.items()
            )
            if entry.refusals
        }
        for name, entry in refused.items():
            one = drafts.pop(name)
            done[name] = _refused(one, entry)
        if not refused:
            break
    for name, one in drafts.items():
        done[name] = _planned(one, _judge(one, drafts, context, logical_cpus), context)
    ordered = tuple(done[name] for name in wanted)
    return BiosPlan(
        bmc=machine,
        registry=view.registry_state,
        knobs=ordered,
        needs_reset=any(entry.status == "change" for entry in ordered),
        blocked_by=blocked_by,
    )


def _judge(one: Draft, drafts: Mapping[str, Draft], context: Context, logical_cpus: int | None) -> Judged:
    others: dict[str, Scalar] = {}
    for other in drafts.values():
        if other is not one:
            others.update(other.to_write)
    kept: list[Part] = []
    waiting: set[str] = set()
    notes: list[str] = []
    refusals = list(_guards(one, logical_cpus))
    skipped: list[str] = []
    for part in one.parts:
        found = (
            None
            if part.is_met
            else obstacle(context.view, part.found.attribute, others, context.vendor.presets)
        )
        if found is None:
            kept.append(part)
        elif found.second_phase:
            kept.append(part)
            waiting.add(part.found.name)
            notes.append(found.reason)
        elif _can_be_left(found, part, one):
            skipped.append(found.reason)
        else:
            refusals.append(found.reason)
    if skipped and not kept:
        refusals += skipped
    elif skipped:
        notes.append(f"left alone: {'; '.join(skipped)}")
    refusals += _conflicts(one, others, context)
    return Judged(tuple(kept), frozenset(waiting), tuple(notes), tuple(dict.fromkeys(refusals)))


def _can_be_left(found: Obstacle, part: Part, one: Draft) -> bool:
    """A slot whose attribute is hidden has nothing in it to set, unless somebody asked for this slot."""
    return found.hidden and part.found.scope != GLOBAL and not one.wanted.slots


def _guards(one: Draft, logical_cpus: int | None) -> tuple[str, ...]:
    if one.knob.id != "iommu" or one.wanted.value != "disabled" or not one.to_write:
        return ()
    if logical_cpus is None or logical_cpus <= _MOST_CPUS_WITHOUT_IOMMU:
        return ()
    return (
        f"this machine has {logical_cpus} CPUs, and more than {_MOST_CPUS_WITHOUT_IOMMU} need interrupt "
        "remapping, which goes with the IOMMU: without it some CPUs do not start",
    )


def _conflicts(one: Draft, others: Mapping[str, Scalar], context: Context) -> list[str]:
    """Attributes of this knob that another knob of the plan forces to something else."""
    found = []
    changed = forced(context.view, others)
    for part in one.parts:
        if part.found.name in changed:
            one_more = changed[part.found.name]
            if not part.choice.is_met_by(one_more.value):
                found.append(
                    f"{part.found.name} becomes {one_more.value} by this same plan, as then {one_more.why}"
                )
    return found


def _refused(one: Draft, judged: Judged) -> BiosKnobPlan:
    return ended(
        one.knob,
        one.wanted,
        "refused",
        "; ".join((*judged.refusals, *one.notes)),
        risks=_risks(one),
        attributes=tuple(part.setting() for part in one.parts),
    )


def _planned(one: Draft, judged: Judged, context: Context) -> BiosKnobPlan:
    settings = tuple(_setting(part, judged) for part in judged.kept)
    reasons = [
        *one.notes,
        *judged.notes,
        *grouped((part.found.name, part.choice.reason) for part in judged.kept if part.choice.reason),
    ]
    if all(part.is_met for part in judged.kept):
        return ended(one.knob, one.wanted, "ok", "; ".join(("already so", *reasons)), attributes=settings)
    own_forced = {
        name: by_itself.value
        for name, by_itself in forced(context.view, one.to_write).items()
        if name not in one.to_write
    }
    risks = list(_risks(one))
    if own_forced:
        also = ", ".join(f"{name} becomes {value}" for name, value in own_forced.items())
        risks.append(f"by itself, as the registry says: {also}")
    return ended(
        one.knob,
        one.wanted,
        "change",
        "; ".join((_what_happens(judged.kept), *reasons)),
        risks=tuple(risks),
        attributes=settings,
    )


def _risks(one: Draft) -> tuple[str, ...]:
    return (*one.risks, *one.knob.risks_of(one.wanted.value))


def _setting(part: Part, judged: Judged) -> BiosSetting:
    return part.setting(phase=2 if part.found.name in judged.second_phase else 1)


def _what_happens(parts: tuple[Part, ...]) -> str:
    write = [part for part in parts if not part.is_met and not part.is_staged]
    staged = [part for part in parts if not part.is_met and part.is_staged]
    texts = []
    if write:
        texts.append(
            f"{len(write)} of {len(parts)} attributes to write" if len(parts) > 1 else "to be written"
        )
    if staged:
        texts.append(f"{len(staged)} staged already, in effect after the next reset")
    if any(part.is_met is False and part.choice.is_met_by(part.current) for part in write):
        texts.append("what is staged would undo it")
    return ", ".join(texts)
