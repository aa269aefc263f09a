"""Makes the arguments of a trial boot permanent, or leaves the permanent ones as they were."""

from __future__ import annotations

from dataclasses import replace
from typing import Optional

from . import boot, trial_deadman, trial_end, trial_space, trial_state
from .boot_loaders import BootLoader, Refusal
from .trial_judge import look, told
from .trial_result import BAD, GOOD, PROBLEMS, Result, boot_loader, difference, failure, result
from .trial_state import COMMITTED, COMMITTING, JUDGED, Trial
from .trial_words import same


def commit(root: str, *, check_mode: bool = False, loader: Optional[BootLoader] = None) -> Result:
    """Makes the arguments permanent that this boot was judged good with.

    The trial is judged once more. The dead-man's switch stops before the boot loader is written: a reset
    amid that would be worse than a node that stays on a boot which was judged good, and any later reset
    still finds the old arguments or, once they are complete, the new ones.

    Args:
        root: "/" or a simulated root.
        check_mode: Only say what would change.
        loader: The boot loader's back end; found when not given.

    Returns:
        See `trial_result.result`. After a failure the permanent arguments are as before; if that failed
        too, the message says so.
    """
    try:
        trial = trial_state.required(root)
        back_end = boot_loader(root, loader)
        if trial.phase == COMMITTING and not check_mode:
            settled = trial_end.settle_commit(root, back_end, trial)
            if settled is None:
                words = "the broken-off commit is complete"
                return result(changed=True, trial_id=trial.id, msg=words, outcome=COMMITTED)
            trial = settled
        if trial.phase != JUDGED or trial.verdict != GOOD:
            raise Refusal("the trial was not judged good, so nothing becomes permanent", "judge it first")
        if trial.judged_boot != boot.boot_id(root):
            raise Refusal("it was another boot that was judged good", "stage the trial again")
        seen = look(root, trial, back_end, accept_aer_loss=trial.accept_aer_loss, settle_s=0)
        if seen.verdict != GOOD:
            if not check_mode:
                trial = replace(trial, verdict=seen.verdict, findings=seen.findings)
                trial_state.put(root, trial)
            return {**told(trial, seen), "failed": True}
        permanent = back_end.default_entry().cmdline
        if not same(permanent, trial.permanent):
            raise Refusal(
                f"the permanent arguments have become {permanent!r} since the trial was staged",
                "stage the trial again: what would become permanent now was not tried",
            )
        # Days may have passed since it was staged.
        trial_space.refuse_full(root)
        done = result(
            changed=True,
            trial_id=trial.id,
            verdict=GOOD,
            notes=seen.notes,
            diff=difference(trial.permanent, trial.target),
        )
        return done if check_mode else _commit(root, back_end, trial, done)
    except PROBLEMS as problem:
        return failure(problem)


def _commit(root: str, back_end: BootLoader, trial: Trial, done: Result) -> Result:
    point = trial_state.restore_point(root)
    if point is None:
        raise Refusal(f"{trial_state.RESTORE} is gone: nobody could undo a commit", "stage the trial again")
    trial = replace(trial, phase=COMMITTING, before_commit=back_end.snapshot())
    trial_state.put(root, trial)
    if trial.id not in point.commits:
        point = replace(point, commits=[*point.commits, trial.id], edits=[*point.edits, trial.edit])
        trial_state.put(root, point)
    try:
        trial_deadman.stop(root)
        trial_end.make_permanent(back_end, trial)
    except PROBLEMS as problem:
        try:
            trial_end.take_back(root, back_end, trial)
        except PROBLEMS as second:
            stuck = failure(second)
            msg = f"{failure(problem)['msg']}; and it could not be taken back: {stuck['msg']}"
            return {**stuck, "msg": msg, "trial_id": trial.id, "phase": trial.phase, "verdict": BAD}
        return failure(problem, trial_id=trial.id, phase=JUDGED, booted=True, needs_reboot=True)
    trial_end.finish(root, back_end, trial)
    return {**done, "outcome": COMMITTED}
