"""What the node remembers of a trial boot: the one under way, the last one's outcome, the restore point.

Each file is written whole or not at all. The trial's own is written before what it announces, so that
whoever looks after a crash knows what may have happened.
"""

from __future__ import annotations

import json
import os
from dataclasses import MISSING, asdict, dataclass, field, fields
from datetime import datetime, timezone
from typing import Any, Dict, List, Optional, Tuple, Type, TypeVar

from . import durable, trial_folders
from .boot_loaders import Refusal
from .kernel_cmdline import Edit
from .paths import read_text
from .reading import NotSupported
from .trial_words import marked

STATE = "/var/lib/nodeprep/trial.json"
LAST = "/var/lib/nodeprep/trial_last.json"
RESTORE = "/var/lib/nodeprep/restore/kernel_args.json"

# In the order of a trial's life. "staging" and "committing" are what a crash leaves behind.
STAGING, STAGED, ARMED, JUDGED, COMMITTING = "staging", "staged", "armed", "judged", "committing"

COMMITTED, ABANDONED, ROLLED_BACK = "committed", "abandoned", "rolled back"


@dataclass(frozen=True)
class Trial:
    """The trial that is under way.

    Attributes:
        id: Given by whoever asked for it; on the command line of the trial boot.
        phase: How far it is.
        edit: What is tried, as `Edit.to_dict` gives it.
        permanent: Permanent arguments when it was staged.
        target: Those it may become.
        cmdline: What the trial boot is given.
        added: Words of it that are not on trial: the marker, and what resets a boot that dies early.
        kernel: Release of the kernel that it boots, "" when the boot loader does not say.
        boot_id: The boot from which it was staged or armed.
        staged_at: ISO 8601, UTC.
        confirm_s: Seconds from the trial boot's start until the node reboots by itself.
        gpu_ids: Further PCI ids that count as GPUs.
        witness: What the node had before.
        verdict: good, bad, not_booted; "" until it was judged.
        findings: What spoke against it.
        judged_boot: The boot that was judged.
        accept_aer_loss: Whether the judgement let a loss of AER ownership pass.
        before_commit: The boot loader's snapshot from just before the permanent arguments were written.
        owner: Who takes its steps, as `trial_owner.Caller.claim` gives it; {} for nobody who said so.
    """

    id: str
    phase: str
    edit: Dict[str, Any]
    permanent: str
    target: str
    cmdline: str
    added: List[str]
    kernel: str
    boot_id: str
    staged_at: str
    confirm_s: int
    gpu_ids: List[str]
    witness: Dict[str, Any]
    verdict: str = ""
    findings: List[Dict[str, Any]] = field(default_factory=list)
    judged_boot: str = ""
    accept_aer_loss: bool = False
    before_commit: Optional[Dict[str, Any]] = None
    owner: Dict[str, Any] = field(default_factory=dict)
    schema: str = "nodeprep.trial/1"

    def wanted(self) -> Edit:
        """The edit that is tried."""
        return Edit.from_dict(self.edit)


@dataclass(frozen=True)
class Outcome:
    """What the last trial came to.

    Attributes:
        id: The trial's id.
        outcome: committed, abandoned or rolled back.
        why: In words, "" for a trial that was committed.
        edit: What was tried.
        findings: What spoke against it.
        witness: What the node had before it; still good when the trial boot goes on running.
        ended_at: ISO 8601, UTC.
    """

    id: str
    outcome: str
    why: str
    edit: Dict[str, Any]
    findings: List[Dict[str, Any]]
    witness: Dict[str, Any]
    ended_at: str
    schema: str = "nodeprep.trial_outcome/1"


@dataclass(frozen=True)
class RestorePoint:
    """The permanent arguments before nodeprep first touched them.

    Attributes:
        loader: Id of the boot loader's back end.
        snapshot: What that back end needs to take everything back.
        permanent: Permanent arguments then.
        running: /proc/cmdline then.
        boot_id: The boot it was made in.
        made_at: ISO 8601, UTC.
        commits: Ids of trials that were made permanent since, or were about to be.
        edits: Their edits.
        restored_boot: The boot in which everything was taken back; "" before that.
    """

    loader: str
    snapshot: Dict[str, Any]
    permanent: str
    running: str
    boot_id: str
    made_at: str
    commits: List[str] = field(default_factory=list)
    edits: List[Dict[str, Any]] = field(default_factory=list)
    restored_boot: str = ""
    schema: str = "nodeprep.restore.kernel_args/1"


_Document = TypeVar("_Document", Trial, Outcome, RestorePoint)


def load(root: str) -> Optional[Trial]:
    """The trial under way, None for none.

    Raises:
        OSError: Its file may not be read.
        ValueError: It is damaged.
    """
    return _load(root, STATE, Trial)


def required(root: str) -> Trial:
    """The trial under way.

    Raises:
        Refusal: There is none.
        OSError: Its file may not be read.
        ValueError: It is damaged.
    """
    trial = load(root)
    if trial is None:
        raise Refusal("no trial boot is under way", "stage one")
    return trial


def last(root: str) -> Optional[Outcome]:
    """What the last trial came to, None when there was none.

    Raises:
        OSError: Its file may not be read.
        ValueError: It is damaged.
    """
    return _load(root, LAST, Outcome)


def restore_point(root: str) -> Optional[RestorePoint]:
    """The restore point, None for none.

    Raises:
        OSError: Its file may not be read.
        ValueError: It is damaged.
    """
    return _load(root, RESTORE, RestorePoint)


def put(root: str, document: "Trial | Outcome | RestorePoint") -> None:
    """Writes a document to its place, for root's eyes only.

    Raises:
        OSError: It cannot be written; the one before is then still there.
    """
    path = {Trial: STATE, Outcome: LAST, RestorePoint: RESTORE}[type(document)]
    durable.put(root, path, json.dumps(asdict(document), indent=2, sort_keys=True) + "\n", mode=0o600)


def remove(root: str, path: str) -> None:
    """Takes a document away, if it is there, and its folder when nothing else is in it.

    Raises:
        OSError: It cannot be removed.
    """
    durable.put(root, path, None)
    trial_folders.remove_if_empty(root, os.path.dirname(path))


def now() -> str:
    """The time, ISO 8601, UTC."""
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


def observe(root: str) -> Dict[str, Any]:
    """The trial under way as the facts tell it, with its owner and for how long it is the owner's.

    Raises:
        NotSupported: None is under way; the reason names the last one's outcome.
        OSError: What is remembered may not be read.
        ValueError: It is damaged.
    """
    trial = load(root)
    if trial is None:
        raise NotSupported("; ".join(["no trial boot is under way", *_told(last(root))]))
    phase, outcome = _told_phase(trial)
    return {
        "id": trial.id,
        "phase": phase,
        "cmdline": trial.cmdline,
        "booted": marked(read_text(root, "/proc/cmdline")) == trial.id,
        "staged_at": trial.staged_at,
        "outcome": outcome,
        "controller": trial.owner.get("controller", ""),
        "run": trial.owner.get("run", ""),
        "since": trial.owner.get("since", ""),
        "held_s": held_s(trial),
    }


def held_s(trial: Trial) -> int:
    """For how many seconds nobody but its owner may touch a trial; 0 when anybody may."""
    if not trial.owner.get("controller"):
        return 0
    seen = datetime.fromisoformat(trial.owner["seen_at"])
    age = (datetime.fromisoformat(now()) - seen).total_seconds()
    hold = int(trial.owner["hold_s"])
    # A clock that was set back after the trial's boot must not hold the node for ever.
    return max(0, hold - int(age)) if abs(age) < hold else 0


def _told_phase(trial: Trial) -> Tuple[str, str]:
    """Phase and outcome in the words of the facts, where "judged" means judged good."""
    if trial.phase == STAGING:
        return STAGED, ""
    if trial.phase == JUDGED and trial.verdict != "good":
        return ARMED, f"{trial.verdict}: {describe(trial.findings)}"
    return (JUDGED if trial.phase == COMMITTING else trial.phase), trial.verdict


def describe(findings: List[Dict[str, Any]]) -> str:
    """Findings in one line."""
    return "; ".join(f"{each['what']}: {each['before']} before, {each['now']} now" for each in findings)


def _told(outcome: Optional[Outcome]) -> List[str]:
    if outcome is None:
        return []
    why = f": {outcome.why}" if outcome.why else ""
    return [f"the last one, {outcome.id}, ended {outcome.ended_at}, {outcome.outcome}{why}"]


def _load(root: str, path: str, kind: Type[_Document]) -> Optional[_Document]:
    text = durable.content(root, path)
    if text is None:
        return None
    try:
        document = json.loads(text)
    except ValueError as error:
        raise ValueError(f"{path} is damaged: {error}") from error
    wanted = {each.name: each for each in fields(kind)}
    if not isinstance(document, dict) or document.get("schema") != wanted["schema"].default:
        raise ValueError(f"{path} is damaged: it is not a {wanted['schema'].default} document")
    # What an older version did not write has its default.
    needed = {name for name, each in wanted.items() if each.default is each.default_factory is MISSING}
    wrong = (set(document) - set(wanted)) | (needed - set(document))
    if wrong:
        raise ValueError(f"{path} is damaged: {', '.join(sorted(wrong))}")
    return kind(**document)
