"""Prepares a trial boot, or refuses to: whatever could strand the node is looked at first."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Dict, List, Optional, Sequence

from . import boot, trial_deadman, trial_end, trial_space, trial_state, trial_witness
from .boot_loaders import BootLoader, Entry, Refusal
from .kernel_cmdline import Edit, words
from .paths import read_text
from .trial_result import GOOD, PROBLEMS, Result, boot_loader, difference, failure, result
from .trial_state import ARMED, COMMITTING, JUDGED, STAGED, STAGING, RestorePoint, Trial
from .trial_words import MARKER, MAX_LENGTH, added, bare, marked, same, valid_id, with_words

# From the start of systemd until the node reboots by itself: long enough for a slow node's services,
# Ansible's look every few seconds and a judgement that waits for late drivers.
CONFIRM_S = 600


@dataclass(frozen=True)
class _Asked:
    """What a trial was asked to be."""

    edit: Edit
    trial_id: str
    confirm_s: int
    gpu_ids: List[str]
    owner: Dict[str, Any]
    check_mode: bool


def stage(
    root: str,
    edit: Edit,
    *,
    trial_id: str,
    confirm_s: int = CONFIRM_S,
    gpu_ids: Sequence[str] = (),
    owner: Optional[Dict[str, Any]] = None,
    check_mode: bool = False,
    loader: Optional[BootLoader] = None,
) -> Result:
    """Prepares a trial boot: restore point, witness of before, dead-man's switch, boot entry.

    A trial of the same edit that is under way is gone on with; one of another edit is abandoned first.

    Args:
        root: "/" or a simulated root.
        edit: What the permanent arguments should have and not have.
        trial_id: Names this trial on the command line of its boot; new for every trial.
        confirm_s: Seconds of the trial boot after which the node reboots by itself.
        gpu_ids: Further "vendor:device" pairs to take for GPUs.
        owner: Who takes the steps of this trial; see `trial_owner`.
        check_mode: Only say what would change.
        loader: The boot loader's back end; found when not given.

    Returns:
        See `trial_result.result`; also permanent and target (arguments now, and if the trial is good) and
        cmdline (of the trial boot). phase is "" when there is nothing to change.
    """
    try:
        if not valid_id(trial_id):
            raise Refusal(f"{trial_id!r} cannot be the id of a trial", "letters, digits, - and _; 4 to 64")
        if not trial_deadman.MIN_CONFIRM_S <= confirm_s <= trial_deadman.MAX_CONFIRM_S:
            limits = f"{trial_deadman.MIN_CONFIRM_S} to {trial_deadman.MAX_CONFIRM_S}"
            raise Refusal(f"confirm_s is {confirm_s}", f"it goes from {limits} seconds")
        _refuse_words(edit)
        back_end = boot_loader(root, loader)
        trial = trial_state.load(root)
        if not check_mode:
            trial = trial_end.settle_commit(root, back_end, trial)
        asked = _Asked(edit, trial_id, confirm_s, list(gpu_ids), owner or {}, check_mode)
        return _stage(root, asked, back_end, trial)
    except PROBLEMS as problem:
        return failure(problem)


def damage(root: str, back_end: BootLoader, trial: Trial) -> str:
    """What of a trial is no longer as it was staged, "" when all is.

    Raises:
        OSError, ValueError: It cannot be known.
    """
    staged = back_end.staged()
    if staged is None or not same(staged, trial.cmdline):
        return "the boot entry of the trial is not there as it was staged"
    if not same(back_end.default_entry().cmdline, trial.permanent):
        return "the permanent arguments have changed since the trial was staged"
    if not trial_deadman.obstacle(root) and not trial_deadman.in_place(root, trial.confirm_s):
        return f"{trial_deadman.UNIT_FILE} is not there as it was written"
    return ""


def _stage(root: str, asked: _Asked, back_end: BootLoader, trial: Optional[Trial]) -> Result:
    edit, running = asked.edit, read_text(root, "/proc/cmdline")
    entry = back_end.default_entry()
    target = edit.apply(entry.cmdline)
    texts = {"permanent": entry.cmdline, "target": target}
    if trial is not None and trial.wanted() == edit and _goes_on(root, back_end, trial, running):
        return _under_way(root, trial, running, texts)
    # Where a trial that was given up still runs, it takes a boot to be rid of it.
    if edit.satisfied(entry.cmdline) and _runs(edit, running) and not trial_end.on_trial(root):
        if trial is not None and not asked.check_mode:
            trial_end.give_up(root, back_end, trial, "its arguments are no longer asked for")
        return result(changed=trial is not None, msg="the kernel arguments are as wanted", **texts)
    extra = added(root, target, asked.trial_id)
    new = Trial(
        id=asked.trial_id,
        phase=STAGING,
        edit=edit.to_dict(),
        permanent=entry.cmdline,
        target=target,
        cmdline=with_words(target, extra),
        added=list(extra),
        kernel=entry.kernel_release,
        boot_id=boot.boot_id(root),
        staged_at=trial_state.now(),
        confirm_s=asked.confirm_s,
        gpu_ids=asked.gpu_ids,
        witness=_witness(root, asked.gpu_ids, running, trial),
        owner=asked.owner,
    )
    _refuse(root, back_end, new)
    done = result(
        changed=True,
        trial_id=new.id,
        phase=STAGED,
        diff=difference(entry.cmdline, target),
        notes=_notes(root, entry, edit),
        deadman=not trial_deadman.obstacle(root),
        cmdline=new.cmdline,
        **texts,
    )
    if asked.check_mode:
        return done
    if trial is not None:
        trial_end.give_up(root, back_end, trial, "another trial was staged")
    _write(root, back_end, new, running)
    return done


def _goes_on(root: str, back_end: BootLoader, trial: Trial, running: str) -> bool:
    """Whether a trial of the wanted edit can be gone on with, rather than staged anew."""
    if marked(running) == trial.id or trial.phase == COMMITTING:
        return True
    rebooted = boot.boot_id(root) != trial.boot_id
    if trial.phase == JUDGED:
        # Good, and the node rebooted before anybody made it permanent: it is tried once more.
        return trial.verdict != GOOD
    if trial.phase == ARMED and rebooted:
        return True
    return trial.phase != STAGING and not damage(root, back_end, trial)


def _under_way(root: str, trial: Trial, running: str, texts: Dict[str, str]) -> Result:
    booted, rebooted = marked(running) == trial.id, boot.boot_id(root) != trial.boot_id
    had_its_boot = booted or trial.phase == JUDGED or (trial.phase == ARMED and rebooted)
    step = "commit" if trial.phase == COMMITTING else "judge" if had_its_boot else "arm"
    return result(
        msg=f"a trial of this is under way, phase {trial.phase}; {step} it",
        trial_id=trial.id,
        phase=trial.phase,
        booted=booted,
        rebooted=rebooted,
        verdict=trial.verdict,
        findings=trial.findings,
        deadman=not trial_deadman.obstacle(root),
        diff=difference(trial.permanent, trial.target),
        cmdline=trial.cmdline,
        **texts,
    )


def _runs(edit: Edit, running: str) -> bool:
    """Whether the running kernel has what is wanted; what a trial boot adds does not count against it."""
    if edit.satisfied(running):
        return True
    return bool(marked(running)) and edit.satisfied(bare(running))


def _witness(root: str, gpu_ids: List[str], running: str, trial: Optional[Trial]) -> Dict[str, Any]:
    """What the node has on arguments that are known to be good.

    Raises:
        Refusal: This boot is a trial that was given up, or something cannot be counted.
    """
    if trial_end.on_trial(root):
        # This boot must not vouch for itself: what it lost would be missed by nobody.
        outcome = trial_state.last(root)
        for earlier in (trial, outcome):
            if earlier is not None and earlier.id == marked(running):
                return earlier.witness
        raise Refusal(
            f"this boot is the trial {marked(running)}, which is not under way any more",
            "reboot the node first: it comes back on its permanent arguments",
        )
    witness = trial_witness.collect(root, gpu_ids)
    gaps = trial_witness.gaps(witness)
    if gaps:
        raise Refusal(
            f"nothing was changed: a trial could not be judged, because of {'; '.join(gaps)}",
            "connect as root, or use --become",
        )
    return witness


def _refuse_words(edit: Edit) -> None:
    """Refuses what is no word of a command line, or nodeprep's own.

    Raises:
        Refusal: Says which.
    """
    for word in (*edit.present, *edit.absent, *edit.replace):
        if words(word) != (word,) or not word.isprintable() or word.count('"') % 2:
            raise Refusal(f"{word!r} is not one kernel argument", "one argument an item")
        if marked(word) or word == MARKER:
            raise Refusal(f"{word!r} is what nodeprep marks trial boots with", "leave it out")


def _refuse(root: str, back_end: BootLoader, new: Trial) -> None:
    """Refuses a trial that would not be safe.

    Raises:
        Refusal: Nothing was changed; says why.
    """
    obstacle = back_end.one_shot_obstacle()
    if obstacle:
        raise Refusal(f"nothing was changed: {obstacle}", "set the arguments by hand, with a console at hand")
    if len(new.cmdline) > MAX_LENGTH:
        raise Refusal(
            f"nothing was changed: the command line would have {len(new.cmdline)} characters",
            f"kernels cut off what comes after 2048; stay below {MAX_LENGTH}",
        )
    trial_space.refuse_full(root)


def _notes(root: str, entry: Entry, edit: Edit) -> List[str]:
    found = []
    release = boot.kernel_release(root)
    if entry.kernel_release and entry.kernel_release != release:
        found.append(f"the next boot also changes the kernel, from {release} to {entry.kernel_release}")
    if trial_deadman.obstacle(root):
        found.append(trial_deadman.obstacle(root))
    wanted = [*edit.present, *edit.replace]
    if "panic=0" in words(edit.apply(entry.cmdline)):
        found.append("with panic=0 a panic does not reset the node: have its BMC or console at hand")
    if any(word.startswith(("init=", "rdinit=")) for word in wanted):
        found.append("where init is not systemd, nothing on the node reboots it: have its BMC at hand")
    if edit.satisfied(entry.cmdline):
        found.append("the permanent arguments are as wanted already, and no boot with them was judged yet")
    return found


def _write(root: str, back_end: BootLoader, new: Trial, running: str) -> None:
    """Leaves a staged trial on the node, or everything as it was.

    Raises:
        Refusal, ToolError, OSError, ValueError: It could not be done.
    """
    point = trial_state.restore_point(root)
    _remember(root, back_end, new, running)
    trial_state.put(root, new)
    try:
        if not trial_deadman.obstacle(root):
            trial_deadman.install(root, new.confirm_s)
        back_end.stage_trial(new.cmdline)
        problem = damage(root, back_end, new)
        if problem:
            raise Refusal(problem)
        trial_state.put(root, replace(new, phase=STAGED))
    except PROBLEMS as problem:
        try:
            trial_end.withdraw(root, back_end, point)
        except PROBLEMS as second:
            raise Refusal(f"{problem}; and what was staged could not be removed: {second}") from problem
        raise


def _remember(root: str, back_end: BootLoader, new: Trial, running: str) -> None:
    """Makes the restore point. One that an earlier commit still needs stays: the first one counts."""
    point = trial_state.restore_point(root)
    if point is not None and point.loader != back_end.id:
        raise Refusal(
            f"nothing was changed: {trial_state.RESTORE} is of the boot loader {point.loader}, "
            f"and this node has {back_end.id}",
            "it is from before the node was reinstalled; look at it, and remove it by hand",
        )
    if point is None or point.restored_boot or not point.commits:
        made = RestorePoint(
            back_end.id, back_end.snapshot(), new.permanent, running, new.boot_id, trial_state.now()
        )
        trial_state.put(root, made)
