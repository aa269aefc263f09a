"""The BIOS of one machine as a task of Ansible: what changed, what would, what failed, before and after."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from nodeprep.bmc.bios import parse_settings
from nodeprep.bmc.bios.wanted import Wanted
from nodeprep.errors import NodeprepError
from nodeprep.model.bios import BiosApplication, BiosPlan, BiosValue
from nodeprep.workflows import bios, bios_apply, bios_work
from nodeprep.workflows.bios import NoBios, look, readable
from nodeprep.workflows.bios_restore import RestoreStore, serial_of
from nodeprep.workflows.home import Home

Unsupported = Literal["error", "accept"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a task says.

    Attributes:
        before, after: One line an attribute, for a diff; the same where nothing changed or would.
        document: What `nodeprep bios plan` or `apply` prints; None where nothing was to be restored.
    """

    changed: bool
    message: str = ""
    failed: bool = False
    hint: str = ""
    before: Sequence[str] = ()
    after: Sequence[str] = ()
    document: BiosPlan | BiosApplication | None = None


def settings_of(knobs: Mapping[str, object]) -> dict[str, Wanted]:
    """The knobs of a task; a value may name slots, as `--set` has it ("4,slot=3").

    Raises:
        PolicyError: Every fault at once.
    """
    return parse_settings(f"{name}={value}" for name, value in knobs.items())


def would_set(
    asked: bios_work.Asked, wanted: Mapping[str, Wanted], unsupported: Unsupported, connect: bios.Connect
) -> Outcome:
    """What `set_knobs` would do; changes nothing.

    Raises:
        Inconclusive, BmcUnreachable: As `bios.plan`.
    """
    plan = bios.plan(asked.target, wanted, connect)
    problems = _problems(plan, unsupported)
    due = _due(plan, reset=asked.reset)
    return Outcome(
        changed=bool(due) and not problems,
        failed=bool(problems),
        message="; ".join(problems),
        before=[f"{name}: {now}" for name, now, _ in due],
        after=[f"{name}: {value}" for name, _, value in due],
        document=plan,
    )


def set_knobs(
    asked: bios_work.Asked,
    wanted: Mapping[str, Wanted],
    unsupported: Unsupported,
    home: Home,
    connect: bios.Connect,
) -> Outcome:
    """Brings knobs into effect, all or none: one that cannot be set keeps the others from being written.

    Raises:
        Inconclusive, BmcUnreachable, UsageError: As `bios_apply.apply`.
    """
    done = bios_apply.apply(
        asked, wanted, home, confirm=lambda plan: not _problems(plan, unsupported), connect=connect
    )
    problems = _problems(done.before, unsupported)
    if problems:
        words = f"{'; '.join(problems)}: nothing was written"
        return Outcome(changed=False, failed=True, message=words, document=done)
    due = _due(done.before, reset=asked.reset)
    now = {one.name: one.after for one in done.outcomes}
    failed = done.state in ("failed", "partial")
    return Outcome(
        changed=bool(due) and any(one.result in ("taken", "staged") for one in done.outcomes),
        failed=failed,
        message=done.error if failed else "; ".join(done.notes),
        hint=done.hint if failed else "",
        before=[f"{name}: {was}" for name, was, _ in due],
        after=[f"{name}: {value if done.state == 'staged' else now.get(name)}" for name, _, value in due],
        document=done,
    )


def would_restore(asked: bios_work.Asked, home: Home, connect: bios.Connect) -> Outcome:
    """What `restore` would do; changes nothing.

    Raises:
        Inconclusive, BmcUnreachable: As `bios.plan`.
    """
    with readable(), connect(asked.target) as connection:
        found = look(connection)
        if isinstance(found, NoBios):
            return Outcome(changed=False, message=found.why)
        last = RestoreStore(home, asked.target, serial_of(found.service)).last()
        current, pending = found.settings.current, found.settings.pending
    back: dict[str, BiosValue] = {}
    if last is not None:
        back = {
            name: value
            for name, value in last[1].to_restore().items()
            if name in current and (current[name] != value or name in pending)
        }
    return Outcome(
        changed=bool(back),
        message="" if last is not None else "nodeprep has no restore point of this BMC",
        before=[f"{name}: {current[name]}" for name in back],
        after=[f"{name}: {value}" for name, value in back.items()],
    )


def restore(asked: bios_work.Asked, home: Home, connect: bios.Connect) -> Outcome:
    """Takes back what nodeprep changed; without a restore point there is nothing to do.

    Raises:
        Inconclusive, BmcUnreachable, UsageError: As `bios_apply.rollback`.
    """
    first = would_restore(asked, home, connect)
    if not first.changed:
        return first
    done = bios_apply.rollback(asked, home, connect=connect)
    failed = done.state in ("failed", "partial")
    return Outcome(
        changed=any(one.result in ("taken", "staged") for one in done.outcomes),
        failed=failed,
        message=done.error if failed else "; ".join(done.notes),
        hint=done.hint if failed else "",
        before=first.before,
        after=first.after,
        document=done,
    )


def words_of(error: NodeprepError) -> str:
    """An error in a line, hint included."""
    return f"{error.message} (hint: {error.hint})" if error.hint else error.message


def _problems(plan: BiosPlan, unsupported: Unsupported) -> tuple[str, ...]:
    """Why the machine cannot be brought to what is asked."""
    bad = {"refused", "ambiguous"} | ({"unsupported"} if unsupported == "error" else set())
    return tuple(
        f"{knob.knob}={knob.wanted}: {knob.status}: {knob.reason}"
        for knob in plan.knobs
        if knob.status in bad
    )


def _due(plan: BiosPlan, *, reset: bool) -> list[tuple[str, str, str]]:
    """Attributes that a task changes: name, value now, value then."""
    return [
        (one.name, str(one.current), str(one.value))
        for knob in plan.knobs
        if knob.status == "change"
        for one in knob.attributes
        if one.current != one.value and (reset or one.pending != one.value)
    ]
