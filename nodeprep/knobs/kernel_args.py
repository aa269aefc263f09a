"""Kernel arguments, as the kernel that runs now was given them.

Compared only: this version does not write boot loaders. Whether an argument has its *effect* is for
the checks (aspm_off, iommu, aer_owned), which read the hardware and not the command line.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from nodeprep.knobs._kernel_risks import guard, risks_of
from nodeprep.knobs._knob import Knob
from nodeprep.model.facts import NodeFacts
from nodeprep.model.kernel_cmdline import Argument, parse, parse_word
from nodeprep.model.plan import Change, ChangeStatus
from nodeprep.model.spec import NodeSpec

_BY_HAND = (
    "this version does not write boot loaders: {verb} it where this system keeps its arguments (grubby on "
    "RHEL, /etc/default/grub.d and update-grub on Debian and Ubuntu) and reboot; the checks judge the effect"
)


def _plan(spec: NodeSpec, facts: NodeFacts) -> Iterator[Change]:
    wanted = spec.policy.kernel_args
    for word in wanted.present:
        for argument in parse_word(word):
            yield _present(argument, spec, facts)
    for word in wanted.absent:
        for argument in parse_word(word):
            yield _absent(argument, facts)


def _present(argument: Argument, spec: NodeSpec, facts: NodeFacts) -> Change:
    change = _Comparison(new=str(argument), why=f"the policy asks for {argument}")
    cmdline = facts.boot.cmdline
    if cmdline.value is None:
        return change.unreadable(cmdline.detail)
    now = parse(cmdline.value)
    count = sum(found == argument for found in now)
    against = [str(found) for found in now if found.contradicts(argument)]
    old = _seen(argument, count, against)
    risks = risks_of(argument, spec, facts)
    forbidden = guard(argument, facts, present=count > 0)
    if forbidden is not None:
        status, reason = forbidden
        return change.of(status, old, reason, risks)
    if count == 1 and not against:
        return change.of("ok", old)
    reason = _BY_HAND.format(verb="add" if count == 0 else "keep one of")
    if against:
        reason = f"{', '.join(against)} contradicts it and must go; {reason}"
    return change.of("unsupported", old, reason, risks)


def _absent(argument: Argument, facts: NodeFacts) -> Change:
    change = _Comparison(new=f"no {argument}", why=f"the policy forbids {argument}")
    cmdline = facts.boot.cmdline
    if cmdline.value is None:
        return change.unreadable(cmdline.detail)
    found = [str(each) for each in parse(cmdline.value) if each.matches(argument)]
    if not found:
        return change.of("ok", f"no {argument}")
    return change.of("unsupported", ", ".join(found), _BY_HAND.format(verb="remove"))


def _seen(argument: Argument, count: int, against: list[str]) -> str:
    times = f"no {argument}" if count == 0 else str(argument) if count == 1 else f"{argument} {count} times"
    return times + (f", with {', '.join(against)}" if against else "")


@dataclass(frozen=True, slots=True)
class _Comparison:
    """One argument's Change, in the making."""

    new: str
    why: str

    def of(self, status: ChangeStatus, old: str, reason: str = "", risks: tuple[str, ...] = ()) -> Change:
        return Change(
            knob=KNOB.id,
            subject="node",
            status=status,
            old=old,
            new=self.new,
            why=self.why,
            reason=reason,
            risks=risks,
            needs_reboot=status != "ok",
        )

    def unreadable(self, detail: str) -> Change:
        return self.of("unknown", "unreadable", f"/proc/cmdline: {detail}")


KNOB = Knob(
    id="kernel_args",
    title="Kernel arguments",
    risks=("a wrong argument can keep a node from booting: have console or BMC access before the reboot",),
    needs_reboot=True,
    plan=_plan,
)
