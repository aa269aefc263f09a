"""Whose trial it is: two controllers at one node must not end, or power cycle, each other's trial.

Each step of a trial says who takes it. While a trial is under way, and until its owner has been silent for
as long as it said that it might be, every step of anybody else is refused.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Callable, Dict, Mapping, Optional

from . import trial_state
from .boot_loaders import Refusal
from .trial_result import PROBLEMS, Result, failure
from .trial_state import Trial

# Of a caller that does not say how long its steps may be apart: a reboot of half an hour, and again.
HOLD_S = 3600
MAX_HOLD_S = 24 * 3600


@dataclass(frozen=True)
class Caller:
    """Who takes a step.

    Attributes:
        controller: User and machine, "" for somebody who does not say.
        run: Id of the run there, "" for none.
        takes_over: Id of an earlier run of the same controller that is known to have ended.
        hold_s: Seconds between two steps after which the caller gives its claim up.
    """

    controller: str = ""
    run: str = ""
    takes_over: str = ""
    hold_s: int = HOLD_S

    @classmethod
    def of(cls, given: Optional[Mapping[str, Any]]) -> Caller:
        """From the options of a step.

        Raises:
            Refusal: hold_s is not to be believed.
        """
        found = {name: value for name, value in (given or {}).items() if value is not None}
        caller = cls(**found)
        if not 60 <= caller.hold_s <= MAX_HOLD_S:
            raise Refusal(f"hold_s is {caller.hold_s}", f"it goes from 60 to {MAX_HOLD_S} seconds")
        return caller

    def claim(self, since: str = "") -> Dict[str, Any]:
        """What the trial remembers of its owner.

        Args:
            since: When the owner began; now when not given.
        """
        now = trial_state.now()
        return {
            "controller": self.controller,
            "run": self.run,
            "since": since or now,
            "seen_at": now,
            "hold_s": self.hold_s,
        }


def step(root: str, caller: Caller, take: Callable[[], Result], *, check_mode: bool = False) -> Result:
    """Takes a step of a trial unless the trial is somebody else's.

    Args:
        root: "/" or a simulated root.
        caller: Who takes it; the trial is the caller's from then on.
        take: The step.
        check_mode: Only say what would change.

    Returns:
        What the step returned, with the owner of the trial that it was about; or a failure that names
        the owner.
    """
    try:
        trial = trial_state.load(root)
    except PROBLEMS:
        # The step says that the trial's file is damaged, or clears it up.
        return take()
    if trial is None:
        done = take()
        return {**done, "owner": _owner_of(root)}
    held = trial_state.held_s(trial)
    if held and not _same(trial.owner, caller):
        return failure(_refusal(trial, held), owner=trial.owner, held=True)
    owner = caller.claim(trial.owner.get("since", "") if trial.owner.get("run") == caller.run else "")
    if not check_mode:
        try:
            trial_state.put(root, replace(trial, owner=owner))
        except PROBLEMS as problem:
            return failure(problem)
    return {**take(), "owner": owner}


def told(owner: Mapping[str, Any]) -> str:
    """An owner in words."""
    run = f", run {owner['run']}" if owner.get("run") else ""
    return f"{owner['controller']}{run}, since {owner['since']}"


def _same(owner: Mapping[str, Any], caller: Caller) -> bool:
    if owner["controller"] != caller.controller:
        return False
    return not owner["run"] or owner["run"] in (caller.run, caller.takes_over)


def _refusal(trial: Trial, held: int) -> Refusal:
    return Refusal(
        f"the trial boot {trial.id} is under way here, begun by {told(trial.owner)}",
        "wait until it is over, or end it from there (nodeprep apply, or rollback); when that controller "
        f"does not come back, anybody may go on in {-(-held // 60)} min",
    )


def _owner_of(root: str) -> Dict[str, Any]:
    """Owner of the trial that a step has begun, {} when it has begun none."""
    try:
        trial = trial_state.load(root)
    except PROBLEMS:
        return {}
    return trial.owner if trial else {}
