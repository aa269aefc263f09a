"""Takes back all kernel arguments that nodeprep ever made permanent on this node."""

from __future__ import annotations

from dataclasses import replace
from typing import List, Optional

from . import boot, trial_end, trial_state
from .boot_loaders import BootLoader, Refusal
from .kernel_cmdline import Edit
from .paths import read_text
from .trial_result import PROBLEMS, Result, boot_loader, difference, failure, result
from .trial_state import RestorePoint
from .trial_words import marked, same


def restore(root: str, *, check_mode: bool = False, loader: Optional[BootLoader] = None) -> Result:
    """Back to the restore point; a trial that is under way is abandoned first.

    The restore point goes when the node runs what was restored, so it takes a call after the reboot.

    Args:
        root: "/" or a simulated root.
        check_mode: Only say what would change.
        loader: The boot loader's back end; found when not given.

    Returns:
        See `trial_result.result`; needs_reboot when other arguments run, finished when nothing is left.
    """
    try:
        back_end = boot_loader(root, loader)
        point = trial_state.restore_point(root)
        trial = trial_state.load(root)
        ends = trial is not None
        if trial is not None and not check_mode:
            trial_end.give_up(root, back_end, trial, "the kernel arguments were restored")
            point = trial_state.restore_point(root)
        if point is None:
            on_trial = trial_end.on_trial(root)
            stale = on_trial or trial_end.runs_a_taken_back_commit(root, trial)
            return result(
                changed=ends,
                msg="nodeprep has changed no kernel arguments here",
                booted=on_trial,
                needs_reboot=stale,
                finished=not stale,
            )
        return _restore(root, back_end, point, ends, check_mode)
    except PROBLEMS as problem:
        return failure(problem)


def _restore(root: str, back_end: BootLoader, point: RestorePoint, ends: bool, check_mode: bool) -> Result:
    before = back_end.default_entry().cmdline
    boot_id, running = boot.boot_id(root), read_text(root, "/proc/cmdline")
    if check_mode:
        wanted = before if point.restored_boot else point.permanent
        return result(
            changed=ends or not same(before, wanted),
            diff=difference(before, wanted),
            needs_reboot=not same(running, wanted),
        )
    notes: List[str] = []
    after = before
    if not point.restored_boot:
        back_end.restore(point.snapshot, [Edit.from_dict(edit) for edit in point.edits])
        after = back_end.default_entry().cmdline
        left = trial_end.left(point.edits, point.permanent, after)
        if left:
            raise Refusal(
                f"the permanent arguments are {after!r}: {'; '.join(left)}",
                f"the old ones were {point.permanent!r}; set them by hand",
            )
        point = replace(point, restored_boot=boot_id)
        trial_state.put(root, point)
        if not same(after, point.permanent):
            notes.append(f"others have changed them since; before nodeprep they were {point.permanent!r}")
    # A boot loader may add words of its own, so a boot since then counts whatever its command line is.
    runs = not marked(running) and (same(running, after) or boot_id != point.restored_boot)
    if runs:
        trial_state.remove(root, trial_state.RESTORE)
    return result(
        changed=ends or not same(before, after),
        diff=difference(before, after),
        notes=notes,
        booted=bool(marked(running)),
        needs_reboot=not runs,
        finished=runs,
    )
