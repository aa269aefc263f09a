"""How a trial boot ends: its traces go, its outcome stays, and a commit that was broken off is settled."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Dict, List, Optional, Sequence

from . import boot, trial_deadman, trial_state
from .boot_loaders import BootLoader, Refusal
from .kernel_cmdline import Edit
from .paths import read_text
from .trial_state import ABANDONED, COMMITTED, COMMITTING, JUDGED, ROLLED_BACK, Outcome, RestorePoint, Trial
from .trial_words import lacking, marked, same


def traces(root: str, back_end: BootLoader) -> bool:
    """Whether a trial has left anything on the node.

    Raises:
        OSError, ValueError: It cannot be known.
    """
    return trial_deadman.left(root) or back_end.armed() or back_end.staged() is not None


def on_trial(root: str) -> bool:
    """Whether this boot is a trial that was not made permanent, so that only a reboot gets rid of it.

    Raises:
        OSError, ValueError: It cannot be known.
    """
    marker = marked(read_text(root, "/proc/cmdline"))
    point = trial_state.restore_point(root)
    return bool(marker) and (point is None or marker not in point.commits)


def runs_a_taken_back_commit(root: str, trial: Optional[Trial]) -> bool:
    """Whether this boot took arguments whose commit was broken off, and which are given up now.

    Their boot was a plain one after a reset, so there is no marker to tell it by.

    Args:
        trial: As it was before it was given up.

    Raises:
        OSError: It cannot be known.
    """
    if trial is None or trial.phase != COMMITTING:
        return False
    return not same(read_text(root, "/proc/cmdline"), trial.permanent)


def clear(root: str, back_end: BootLoader) -> None:
    """Takes away what a trial has put on the node, the one-shot entry first: from then on a reset is safe.

    Raises:
        Refusal, ToolError, UnitError, OSError, ValueError: Something is still there.
    """
    for there, undo in (
        (back_end.armed(), back_end.disarm),
        (back_end.staged() is not None, back_end.unstage),
    ):
        # Also when nothing shows, because it may have been broken off; only then may it be refused.
        try:
            undo()
        except Refusal:
            if there:
                raise
    trial_deadman.remove(root)


def give_up(root: str, back_end: BootLoader, trial: Trial, why: str) -> str:
    """Ends a trial without making it permanent; returns the outcome.

    Raises:
        Refusal, ToolError, UnitError, OSError, ValueError: It is not over; it can be given up again.
    """
    if trial.phase == COMMITTING:
        trial = take_back(root, back_end, trial)
    rebooted = boot.boot_id(root) != trial.boot_id
    outcome = ROLLED_BACK if rebooted and trial.phase in (trial_state.ARMED, JUDGED) else ABANDONED
    why = why or trial_state.describe(trial.findings)
    _end(root, back_end, trial, outcome, why)
    return outcome


def withdraw(root: str, back_end: BootLoader, point: Optional[RestorePoint]) -> None:
    """Takes away a trial that was refused while it was being staged: it has never been one.

    Args:
        point: The restore point from before, None for none.

    Raises:
        Refusal, ToolError, UnitError, OSError, ValueError: Something of it is still there.
    """
    clear(root, back_end)
    if point is None:
        trial_state.remove(root, trial_state.RESTORE)
    else:
        trial_state.put(root, point)
    # Last, so that whoever comes after a crash knows that there is something to end.
    trial_state.remove(root, trial_state.STATE)


def finish(root: str, back_end: BootLoader, trial: Trial) -> None:
    """Ends a trial that has been made permanent.

    Raises:
        Refusal, ToolError, UnitError, OSError, ValueError: It is not over; it can be finished again.
    """
    _end(root, back_end, trial, COMMITTED, "")


def make_permanent(back_end: BootLoader, trial: Trial, wanted: str = "") -> None:
    """Writes the permanent arguments of a trial in the phase "committing", and reads them back.

    Args:
        wanted: What they are then; those that were judged when not given.

    Raises:
        Refusal: They did not come out as judged.
        ToolError, OSError, ValueError: The boot loader failed.
    """
    back_end.commit(trial.wanted())
    now = back_end.default_entry().cmdline
    wanted = wanted or trial.target
    if not trial.wanted().satisfied(now) or not same(now, wanted):
        raise Refusal(f"the permanent arguments came out as {now!r}, and {wanted!r} was to be permanent")


def take_back(root: str, back_end: BootLoader, trial: Trial) -> Trial:
    """Undoes a commit, and nothing of what others did since; returns the trial in the phase before it.

    Raises:
        Refusal: Something of the commit is still there.
        ToolError, OSError, ValueError: The boot loader failed.
    """
    if trial.before_commit is not None:
        back_end.restore(trial.before_commit, [trial.wanted()])
    now = back_end.default_entry().cmdline
    problems = left([trial.edit], trial.permanent, now)
    if problems:
        raise Refusal(
            f"the permanent arguments are {now!r}, and {trial.permanent!r} could not be restored: "
            f"{'; '.join(problems)}",
            "look at the boot loader's configuration by hand before this node reboots",
        )
    point = trial_state.restore_point(root)
    if point is not None and trial.id in point.commits:
        kept = [at for at, commit in enumerate(point.commits) if commit != trial.id]
        commits, edits = [point.commits[at] for at in kept], [point.edits[at] for at in kept]
        trial_state.put(root, replace(point, commits=commits, edits=edits))
    trial = replace(trial, phase=JUDGED, before_commit=None)
    trial_state.put(root, trial)
    return trial


def settle_commit(root: str, back_end: BootLoader, trial: Optional[Trial]) -> Optional[Trial]:
    """Settles a commit that was broken off; returns the trial that is then under way.

    Arguments that have become permanent were judged good before, so they stay, whatever others have added
    since; half a commit goes back.

    Raises:
        Refusal, ToolError, UnitError, OSError, ValueError: It is not settled.
    """
    if trial is None or trial.phase != COMMITTING:
        return trial
    now = back_end.default_entry().cmdline
    if trial.wanted().satisfied(now):
        # Once more, because the default entry is only one of the places that a commit writes.
        make_permanent(back_end, trial, now)
        finish(root, back_end, trial)
        return None
    return take_back(root, back_end, trial)


def left(edits: Sequence[Dict[str, Any]], permanent: str, now: str) -> List[str]:
    """What of nodeprep's own changes is still there, in words.

    Args:
        edits: The edits that were to be taken back, as `Edit.to_dict` gives them.
        permanent: Permanent arguments before the first of them.
        now: Permanent arguments now.
    """
    problems: List[str] = []
    for edit in map(Edit.from_dict, edits):
        changed = edit.apply(permanent)
        not_there, not_back = lacking(changed, now), lacking(permanent, now)
        added, removed = lacking(changed, permanent), lacking(permanent, changed)
        problems.extend(f"{word} is still there" for word in added if word not in not_there)
        problems.extend(f"{word} is not back" for word in removed if word in not_back)
    return list(dict.fromkeys(problems))


def _end(root: str, back_end: BootLoader, trial: Trial, outcome: str, why: str) -> None:
    clear(root, back_end)
    trial_state.put(
        root,
        Outcome(trial.id, outcome, why, trial.edit, trial.findings, trial.witness, trial_state.now()),
    )
    if outcome != COMMITTED:
        point = trial_state.restore_point(root)
        # Nothing was made permanent since it was made: it would only tie the node to an old state.
        if point is not None and not point.commits:
            trial_state.remove(root, trial_state.RESTORE)
    # Last, so that whoever comes after a crash knows that there is something to end.
    trial_state.remove(root, trial_state.STATE)
