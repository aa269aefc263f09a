"""Kernel arguments: of the kernel that runs now, and of the one that the next boot would start.

Written by a trial boot (docs/trial-boot.md). Whether an argument has its *effect* is for the checks
(aspm_off, iommu, aer_owned), which read the hardware and not the command line.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from nodeprep.knobs._kernel_guards import write_obstacle
from nodeprep.knobs._kernel_risks import guard, next_boot_risks, removal_risks, risks_of
from nodeprep.knobs._knob import Knob
from nodeprep.model.facts import NodeFacts, TrialBoot
from nodeprep.model.plan import Change, ChangeStatus
from nodeprep.model.spec import NodeSpec
from nodeprep.node.kernel_cmdline import Argument, Edit, parse, parse_word

_ASPM_OFF = "pcie_aspm=off"
_NATIVE = "pcie_ports=native"
_NO_TRIAL = "no trial boot"
_STANDING = {"staged": "prepared", "armed": "armed", "judged": "good, and not permanent"}


def _plan(spec: NodeSpec, facts: NodeFacts) -> Iterator[Change]:
    for one in _wanted(spec):
        yield _compare(one, spec, facts)
    yield from _unended_trial(facts)


@dataclass(frozen=True, slots=True)
class _Wanted:
    """One argument of the policy, as an edit of its own.

    Attributes:
        edit: Brings about this argument alone.
    """

    argument: Argument
    edit: Edit
    new: str
    why: str
    banned: bool = False


def _wanted(spec: NodeSpec) -> Iterator[_Wanted]:
    policy = spec.policy.kernel_args
    for word in policy.present:
        for argument in parse_word(word):
            text = argument.word
            yield _Wanted(argument, Edit(present=(text,)), text, f"the policy asks for {text}")
    for word in policy.replace:
        for argument in parse_word(word):
            text = argument.word
            why = f"the policy wants it as the only value of {argument.key}"
            yield _Wanted(argument, Edit(replace=(text,)), text, why)
    for word in policy.absent:
        for argument in parse_word(word):
            text = argument.word
            why = f"the policy forbids {text}"
            yield _Wanted(argument, Edit(absent=(text,)), f"no {text}", why, banned=True)


def _unended_trial(facts: NodeFacts) -> Iterator[Change]:
    """A trial that nobody ended: left alone it boots, or resets, the node at a time of its own."""
    trial = facts.boot_loader.trial
    if trial.state == "not_supported" or facts.boot_loader.id.value is None:
        return
    under_way = trial.value
    yield Change(
        knob=KNOB.id,
        subject="node",
        status="unknown" if under_way is None else "change",
        old="unreadable" if under_way is None else _standing_of(under_way),
        new=_NO_TRIAL,
        why="apply makes it permanent when it is good, and gives it up when not",
        reason=trial.detail if under_way is None else _begun(under_way),
        needs_reboot=under_way is not None and under_way.booted,
    )


def _standing_of(trial: TrialBoot) -> str:
    if trial.phase == "armed" and trial.outcome:
        return "trial boot not good"
    if trial.phase == "armed" and trial.booted:
        return "trial boot running"
    return f"trial boot {_STANDING[trial.phase]}"


def _begun(trial: TrialBoot) -> str:
    """Whose it is, and what was seen of it if it was not good."""
    run = f", run {trial.run}" if trial.run else ""
    owner = f"begun by {trial.controller}{run}, {trial.since}" if trial.controller else ""
    bad = trial.outcome if trial.phase == "armed" else ""
    return "; ".join(filter(None, [owner, bad]))


def _compare(one: _Wanted, spec: NodeSpec, facts: NodeFacts) -> Change:
    def change(status: ChangeStatus, old: str, reason: str = "", risks: tuple[str, ...] = ()) -> Change:
        return Change(
            knob=KNOB.id,
            subject="node",
            status=status,
            old=old,
            new=one.new,
            why=one.why,
            reason=reason,
            risks=risks,
            needs_reboot=status != "ok",
        )

    running = facts.boot.cmdline
    if running.value is None:
        return change("unknown", "unreadable", f"/proc/cmdline: {running.detail}")
    old = _seen(one, running.value)
    risks = next_boot_risks(facts) + (removal_risks if one.banned else risks_of)(one.argument, spec, facts)
    there = one.argument in parse(running.value)
    forbidden = None if one.banned else guard(one.argument, spec, facts, present=there)
    if forbidden is not None:
        return change(forbidden[0], old, forbidden[1], risks)
    status, when, reason = _standing(one, running.value, facts)
    return change(status, old + when, reason, () if status == "ok" else risks)


def _standing(one: _Wanted, running: str, facts: NodeFacts) -> tuple[ChangeStatus, str, str]:
    """Status of an argument that nothing forbids, what to add to how it is now, and the reason."""
    in_effect = one.edit.satisfied(running)
    loader = facts.boot_loader
    if loader.id.state == "not_supported":
        elsewhere = ", kept outside this node" if in_effect else ""
        return "ok" if in_effect else "unsupported", elsewhere, "" if in_effect else loader.id.detail
    if loader.id.value is None or loader.cmdline.value is None:
        detail = loader.id.detail if loader.id.value is None else loader.cmdline.detail
        return "unknown", "", f"permanent kernel arguments: {detail}"
    permanent = one.edit.satisfied(loader.cmdline.value)
    if in_effect and permanent:
        return "ok", "", ""
    when = ", for this boot only" if in_effect else " until the next boot" if permanent else ""
    if loader.one_shot.value is not True:
        return "refused", when, f"no trial boot is possible: {loader.one_shot.detail}"
    obstacle = write_obstacle(facts)
    return ("change", when, "") if obstacle is None else (obstacle[0], when, obstacle[1])


def _seen(one: _Wanted, cmdline: str) -> str:
    given = parse(cmdline)
    if one.edit.replace:
        key = one.argument.key
        return ", ".join(each.word for each in given if each.key == key) or f"no {key}"
    if one.banned:
        return ", ".join(each.word for each in given if each.matches(one.argument)) or one.new
    count = given.count(one.argument)
    name = one.argument.word
    times = f"no {name}" if count == 0 else name if count == 1 else f"{name} {count} times"
    against = [each.word for each in given if each.contradicts(one.argument) or each.overrides(one.argument)]
    return times + (f", with {', '.join(against)}" if against else "")


def _settings(spec: NodeSpec, changes: tuple[Change, ...]) -> Mapping[str, Any]:
    """The edit of what is due: an argument that a guard refused is not in it.

    Who asks for pcie_aspm=off where pcie_ports=native does not come with it has been told by the plan
    that AER goes blind, so its loss does not speak against the trial.
    """
    due = {change.new for change in changes if change.status == "change"}
    picked = [one for one in _wanted(spec) if one.new in due]
    edit = Edit(
        present=tuple(word for one in picked for word in one.edit.present),
        absent=tuple(word for one in picked for word in one.edit.absent),
        replace=tuple(word for one in picked for word in one.edit.replace),
    )
    coming = {change.new for change in changes if change.status in ("ok", "change")}
    return {KNOB.id: {**edit.to_dict(), "accept_aer_loss": _ASPM_OFF in coming and _NATIVE not in coming}}


KNOB = Knob(
    id="kernel_args",
    title="Kernel arguments",
    risks=("a wrong argument can keep a node from booting: it is tried for one boot first",),
    needs_reboot=True,
    plan=_plan,
    settings=_settings,
)
