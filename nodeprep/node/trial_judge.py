"""Whether a trial boot was good: it is there, its arguments are, and nothing was lost.

Fail closed: what cannot be read speaks against the boot.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import Any, Dict, List, Optional

from . import boot, trial_deadman, trial_state, trial_system, trial_witness
from .boot_loaders import BootLoader, Refusal
from .kernel_cmdline import words
from .paths import exists, read_text
from .trial_result import BAD, GOOD, NOT_BOOTED, PROBLEMS, Result, boot_loader, failure, result
from .trial_state import ARMED, COMMITTING, JUDGED, Trial
from .trial_witness import Finding
from .trial_words import lacking, marked, unmet, without

# ssh is up before the last driver is: so long what is missing is waited for.
SETTLE_S = 60.0
_PAUSE_S = 2.0


@dataclass
class Judgement:
    """What was seen of a trial.

    Attributes:
        verdict: good, bad or not_booted.
        boot_id: The boot that was looked at.
        booted: It is the trial.
        rebooted: It is another one than the trial was armed in.
        still_armed: The boot loader did not clear the one-shot entry.
        deadman: The unit that reboots an unconfirmed trial boot is in place.
    """

    boot_id: str = ""
    booted: bool = False
    rebooted: bool = False
    still_armed: bool = False
    deadman: bool = False
    findings: List[Finding] = field(default_factory=list)
    notes: List[str] = field(default_factory=list)
    evidence: Dict[str, Any] = field(default_factory=dict)

    @property
    def verdict(self) -> str:
        """Good only without a single finding."""
        if not self.booted:
            return NOT_BOOTED
        return BAD if self.findings else GOOD


def judge(
    root: str,
    *,
    accept_aer_loss: bool = False,
    settle_s: float = SETTLE_S,
    check_mode: bool = False,
    loader: Optional[BootLoader] = None,
) -> Result:
    """Judges the trial that is under way, after the reboot.

    A boot that is not the trial is told apart from a bad one, and what is left of the trial boot is
    gathered. A one-shot entry that the boot loader did not clear is cleared, and counts against it.

    Args:
        root: "/" or a simulated root.
        accept_aer_loss: Lost ownership of AER (pcie_aspm=off does that) does not count.
        settle_s: Seconds to wait for drivers and services that are late.
        check_mode: Only look; the judgement is not kept.
        loader: The boot loader's back end; found when not given.

    Returns:
        See `trial_result.result`. Not failed when the trial is bad: the verdict says so. Failed when
        there is no trial to judge, or the judgement could not be kept. Without a trial, trial_id and
        outcome are of the last one, so that whoever lost the connection in a commit learns how it ended.
    """
    try:
        trial = trial_state.load(root)
        if trial is None:
            ended = trial_state.last(root)
            told_of = {"trial_id": ended.id, "outcome": ended.outcome} if ended else {}
            return result(failed=True, verdict=NOT_BOOTED, msg="no trial boot is under way", **told_of)
        if trial.phase == COMMITTING:
            raise Refusal("making the trial permanent was broken off", "commit or abandon it")
        back_end = boot_loader(root, loader)
        seen = look(root, trial, back_end, accept_aer_loss=accept_aer_loss, settle_s=settle_s)
        if not check_mode and (seen.booted or _had_its_boot(trial, seen)):
            if seen.still_armed:
                back_end.disarm()
            trial = replace(
                trial,
                phase=JUDGED,
                verdict=seen.verdict,
                findings=seen.findings,
                judged_boot=seen.boot_id,
                accept_aer_loss=accept_aer_loss,
            )
            trial_state.put(root, trial)
    except PROBLEMS as problem:
        found = failure(problem, verdict=BAD)
        unreadable = {"what": "judgement", "before": "possible", "now": found["msg"]}
        return {**found, "findings": [unreadable]}
    return told(trial, seen)


def told(trial: Trial, seen: Judgement) -> Result:
    """A judgement as the result of a step."""
    return result(
        msg=_words(seen),
        trial_id=trial.id,
        phase=trial.phase,
        booted=seen.booted,
        rebooted=seen.rebooted,
        verdict=seen.verdict,
        findings=seen.findings,
        notes=seen.notes,
        evidence=seen.evidence,
        deadman=seen.deadman,
        needs_reboot=seen.booted and seen.verdict != GOOD,
    )


def look(
    root: str, trial: Trial, back_end: BootLoader, *, accept_aer_loss: bool, settle_s: float
) -> Judgement:
    """Judges without writing anything.

    Raises:
        OSError, ValueError: This boot cannot be told from another, or the boot loader cannot be read.
    """
    running = read_text(root, "/proc/cmdline")
    boot_id = boot.boot_id(root)
    seen = Judgement(boot_id, booted=marked(running) == trial.id, rebooted=boot_id != trial.boot_id)
    seen.deadman = not trial_deadman.obstacle(root) and trial_deadman.in_place(root, trial.confirm_s)
    armed = back_end.armed()
    if seen.booted:
        seen.still_armed = armed
        _judge_boot(root, trial, running, seen)
        _judge_node(root, trial, seen, accept_aer_loss, settle_s)
    elif _had_its_boot(trial, seen):
        seen.still_armed = armed
        _not_there(root, trial, running, seen)
    else:
        now = "another one, but it was never armed" if seen.rebooted else "the same one: no reboot since"
        seen.findings.append(_finding("boot", f"boot {trial.boot_id}", now))
    return seen


def _had_its_boot(trial: Trial, seen: Judgement) -> bool:
    """Whether the boot that was to be the trial has been and gone."""
    return seen.rebooted and not seen.booted and trial.phase in (ARMED, JUDGED)


def _judge_boot(root: str, trial: Trial, running: str, seen: Judgement) -> None:
    """The boot itself: another one than before, with exactly the arguments that were asked for."""
    if not seen.rebooted:
        seen.findings.append(_finding("boot", f"boot {trial.boot_id}", "the same boot id"))
    if seen.still_armed:
        now = "still armed: the boot loader did not clear it, so every boot would have been the trial"
        seen.findings.append(_finding("one_shot", "armed for one boot", now))
    for word in lacking(trial.cmdline, running):
        seen.findings.append(_finding("arguments", f"{word} in the boot entry", "not in /proc/cmdline"))
    for problem in unmet(trial.wanted(), without(running, trial.added)):
        seen.findings.append(_finding("arguments", "as asked for", problem))
    more = lacking(running, trial.cmdline)
    if more:
        seen.notes.append(f"in /proc/cmdline, and not in the boot entry: {' '.join(more)}")
    # An initramfs that does not find init= starts another one: the node boots, and not as asked for.
    wanted = [word[len("init=") :] for word in words(trial.cmdline) if word.startswith("init=")]
    if wanted and not exists(root, wanted[-1]):
        seen.findings.append(_finding("init", f"{wanted[-1]} asked for", "there is no such file"))
    release = boot.kernel_release(root)
    if trial.kernel and trial.kernel != release:
        seen.notes.append(f"the kernel is {release}; the boot entry named {trial.kernel}")


def _judge_node(root: str, trial: Trial, seen: Judgement, accept_aer_loss: bool, settle_s: float) -> None:
    end = time.monotonic() + settle_s
    while True:
        after = trial_witness.collect(root, trial.gpu_ids)
        compared = trial_witness.compare(trial.witness, after, accept_aer_loss)
        if trial_witness.settled(compared, after) or time.monotonic() >= end:
            break
        time.sleep(min(_PAUSE_S, max(0.0, end - time.monotonic())))
    seen.findings.extend(compared.findings)
    seen.notes.extend(compared.notes)


def _not_there(root: str, trial: Trial, running: str, seen: Judgement) -> None:
    other = marked(running)
    now = f"the trial {other} runs" if other else "the node runs its old arguments"
    seen.findings.append(_finding("boot", "the trial was to boot", f"{now}, so the trial did not last"))
    if seen.still_armed:
        seen.findings.append(
            _finding("one_shot", "armed for one boot", "still armed: the boot loader did not take it")
        )
    seen.evidence = trial_system.evidence(root, trial.id)


def _words(seen: Judgement) -> str:
    if seen.verdict == GOOD:
        return "the trial boot is good"
    start = "the trial boot is bad" if seen.booted else "this boot is not the trial"
    return f"{start}: {trial_state.describe(seen.findings)}"


def _finding(what: str, before: str, now: str) -> Finding:
    return {"what": what, "before": before, "now": now}
