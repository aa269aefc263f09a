"""New kernel arguments by trial boot: one boot with them, and permanent only when that was judged good.

stage -> arm -> (the caller reboots) -> judge -> commit, or abandon; restore undoes commits. Every step
may be broken off anywhere and called again. Until commit, the permanent arguments are untouched, so any
reset brings the old ones back.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Dict, List, Optional

from . import boot, trial_deadman, trial_end, trial_state
from .boot_loaders import BootLoader, Refusal
from .paths import read_text
from .trial_commit import commit
from .trial_judge import judge
from .trial_restore import restore
from .trial_result import PROBLEMS, Result, boot_loader, failure, result
from .trial_stage import CONFIRM_S, damage, stage
from .trial_state import ARMED, JUDGED, STAGED, Trial
from .trial_words import marked

__all__ = ["CONFIRM_S", "abandon", "arm", "commit", "judge", "restore", "stage"]


def arm(root: str, *, check_mode: bool = False, loader: Optional[BootLoader] = None) -> Result:
    """Lets the next boot, and only that one, be the trial.

    Args:
        root: "/" or a simulated root.
        check_mode: Only say what would change.
        loader: The boot loader's back end; found when not given.

    Returns:
        See `trial_result.result`; needs_reboot when the trial waits for its boot.
    """
    try:
        trial = trial_state.required(root)
        back_end = boot_loader(root, loader)
        boot_id = boot.boot_id(root)
        booted = marked(read_text(root, "/proc/cmdline")) == trial.id
        if booted or (trial.phase == JUDGED) or (trial.phase == ARMED and boot_id != trial.boot_id):
            why = "the trial has had its boot: judge it"
            rebooted = boot_id != trial.boot_id
            return result(trial_id=trial.id, phase=trial.phase, booted=booted, rebooted=rebooted, msg=why)
        problem = damage(root, back_end, trial)
        if trial.phase not in (STAGED, ARMED) or problem:
            raise Refusal(problem or "staging the trial was broken off", "stage it again")
        armed = trial.phase == ARMED and back_end.armed()
        if not armed and not check_mode:
            # Before the boot loader is told, so that a crash in between leaves nothing armed and unknown.
            trial = replace(trial, phase=ARMED, boot_id=boot_id)
            trial_state.put(root, trial)
            back_end.arm()
            if not back_end.armed():
                raise Refusal("the boot loader does not keep the one-shot entry")
        return result(
            changed=not armed,
            trial_id=trial.id,
            phase=trial.phase,
            msg="" if armed or check_mode else "the next boot is the trial",
            deadman=not trial_deadman.obstacle(root),
            needs_reboot=armed or not check_mode,
        )
    except PROBLEMS as problem:
        return failure(problem)


def abandon(
    root: str, *, why: str = "", check_mode: bool = False, loader: Optional[BootLoader] = None
) -> Result:
    """Ends a trial without making it permanent: entry, one-shot and dead-man's switch go.

    Args:
        root: "/" or a simulated root.
        why: The reason, for whoever asks later; that of the judgement when not given.
        check_mode: Only say what would change.
        loader: The boot loader's back end; found when not given.

    Returns:
        See `trial_result.result`; needs_reboot when this boot is the trial.
    """
    damaged: List[str] = []
    try:
        back_end = boot_loader(root, loader)
        trial = _load_or_note(root, damaged)
        there = trial is not None or bool(damaged) or trial_end.traces(root, back_end)
        more: Dict[str, Any] = {"changed": there, "notes": damaged, "trial_id": trial.id if trial else ""}
        if there and not check_mode:
            if trial is not None:
                outcome = trial_end.give_up(root, back_end, trial, why)
                more.update(msg=f"the trial was {outcome}", outcome=outcome)
            else:
                trial_end.clear(root, back_end)
                trial_state.remove(root, trial_state.STATE)
        if not there:
            more.update(_last(root, damaged))
        on_trial = trial_end.on_trial(root)
        stale = on_trial or trial_end.runs_a_taken_back_commit(root, trial)
        return result(booted=on_trial, needs_reboot=stale, **more)
    except PROBLEMS as problem:
        return failure(problem, notes=damaged)


def _last(root: str, notes: List[str]) -> Dict[str, str]:
    """Id and outcome of the trial that ended last; nothing and a note when its file is damaged."""
    try:
        ended = trial_state.last(root)
    except ValueError as problem:
        notes.append(str(problem))
        return {}
    return {"trial_id": ended.id, "outcome": ended.outcome} if ended else {}


def _load_or_note(root: str, notes: List[str]) -> Optional[Trial]:
    """The trial under way; None and a note when its file is damaged: its traces can go all the same."""
    try:
        return trial_state.load(root)
    except ValueError as problem:
        notes.append(str(problem))
        return None
