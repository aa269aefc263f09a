"""This run's claim to the nodes that it tries kernel arguments on.

The node keeps who takes the steps of its trial, and refuses everybody else (nodeprep/node/trial_owner.py).
Here is said who this run is, which earlier run of this controller has ended and may be taken over, and when
a node's power is this run's to cycle.
"""

from __future__ import annotations

import fcntl
import getpass
import os
import platform
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from nodeprep.errors import UsageError
from nodeprep.fleet import Outcome
from nodeprep.model.facts import TrialBoot
from nodeprep.workflows.home import Home
from nodeprep.workflows.session import Observed, Session

# Beside two reboots and a dead-man's time: the looks in between, a judgement, and the BMC's own slowness.
_MARGIN_S = 600
LOOK_PHASE = "claim"
_ASK_HINT = "try again when the host answers (nodeprep inspect shows it)"
_RUN = re.compile(r"[A-Za-z0-9-]{1,80}")


class Claim:
    """What one run may do to its nodes.

    Args:
        session: Its nodes have been looked at.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._controller = controller(session.home)
        self._began = time.monotonic()
        self._refused: dict[str, str] = {}

    def begin(self) -> None:
        """From now on the nodes hold for this run what it says; call it before the first step."""
        self._began = time.monotonic()

    def refusal(self, host: str) -> tuple[str, str]:
        """Why this run may not touch a host, and what to do; empty when it may.

        The node has the last word: its facts are as old as the plan.
        """
        return self._held(self._trial(host))

    def look_again(self, hosts: Sequence[str]) -> dict[str, tuple[str, str]]:
        """Hosts that must not be reset now, with why and what to do; to be asked right before a reset.

        A step on the node is refused while another controller's trial goes on; a BMC, and a plain reboot,
        ask nobody, and the plan may be an hour old.
        """
        if not hosts:
            return {}
        seen = self._session.observe(hosts, label="before_reset", phase=LOOK_PHASE)
        held: dict[str, tuple[str, str]] = {}
        for host in hosts:
            words, hint = self._held_now(host, seen)
            if words:
                held[host] = f"the host was not reset: {words}", hint
                self._refused[host] = words
        return held

    def _held_now(self, host: str, seen: Observed) -> tuple[str, str]:
        if host not in seen.facts:
            lost = seen.failed.get(host)
            why = lost.error if lost is not None and lost.error else "no answer"
            return f"whether another controller is at work there cannot be asked: {why}", _ASK_HINT
        trial = seen.facts[host].boot_loader.trial
        if trial.state == "error":
            return f"whether another controller is at work there is not known: {trial.detail}", _ASK_HINT
        return self._held(trial.value)

    def _held(self, trial: TrialBoot | None) -> tuple[str, str]:
        if trial is None or not trial.held_s or self._mine(trial):
            return "", ""
        run = f", run {trial.run}" if trial.run else ""
        words = f"a trial boot is under way, begun by {trial.controller}{run}, since {trial.since}"
        if trial.controller == self._controller:
            return words, "that run still goes on; wait for its end, or stop it and try again"
        minutes = -(-trial.held_s // 60)
        return words, (
            "wait until it is over, or end it from there (nodeprep apply, or rollback); when that controller "
            f"does not come back, anybody may go on in {minutes} min"
        )

    def owner(self, host: str) -> dict[str, Any]:
        """This run, as the node's steps are told of it."""
        trial = self._trial(host)
        earlier = trial.run if trial is not None and trial.held_s and self._mine(trial) else ""
        return {
            "controller": self._controller,
            "run": self._session.run_id,
            "takes_over": earlier,
            "hold_s": self._hold_s(host),
        }

    def hear(self, outcomes: Mapping[str, Outcome]) -> None:
        """Remembers what nodes answered to steps of this run: one that another controller holds says so."""
        for host, outcome in outcomes.items():
            seen: Mapping[str, Any] = outcome.data.get("kernel_args") or {}
            if seen.get("held"):
                owner: Mapping[str, Any] = seen.get("owner") or {}
                self._refused[host] = (
                    f"a trial boot of {owner.get('controller') or 'somebody else'} is under way"
                )

    def reset_obstacle(self, host: str) -> str:
        """Why a node is not this run's to reset; "" when no node has said so."""
        return self._refused.get(host, "")

    def power_obstacle(self, host: str, tried: Outcome) -> str:
        """Why a node's power is not this run's to cycle; "" when it is.

        Args:
            tried: How its trial went; the node said whose trial it is when it was armed.
        """
        seen: Mapping[str, Any] = tried.data.get("kernel_args") or {}
        owner: Mapping[str, Any] = seen.get("owner") or {}
        if owner.get("run") != self._session.run_id:
            return f"the trial is not this run's, but of {owner.get('controller') or 'nobody who said so'}"
        if time.monotonic() - self._began >= self._hold_s(host):
            return "it has been silent for so long that another controller may be at work there"
        return ""

    def _hold_s(self, host: str) -> int:
        trial = self._session.policy(host).trial
        return 2 * trial.return_s + trial.confirm_s + _MARGIN_S

    def _mine(self, trial: TrialBoot) -> bool:
        if trial.controller != self._controller:
            return False
        return trial.run in ("", self._session.run_id) or not _goes_on(self._session.home, trial.run)

    def _trial(self, host: str) -> TrialBoot | None:
        facts = self._session.facts.get(host)
        return None if facts is None else facts.boot_loader.trial.value


@contextmanager
def claim(session: Session) -> Iterator[Claim]:
    """A claim, and the mark by which later runs of this controller know that this one goes on.

    Raises:
        UsageError: The controller's own folder cannot be written.
    """
    path = _mark(session.home, session.run_id)
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        mark = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        # The kernel lets go of it with the process, however that ends.
        fcntl.flock(mark, fcntl.LOCK_EX)
    except OSError as error:
        raise UsageError(
            f"cannot write {path}: {error.strerror}", hint="name another folder with NODEPREP_HOME"
        ) from error
    try:
        yield Claim(session)
    finally:
        path.unlink(missing_ok=True)
        os.close(mark)


def controller(home: Home) -> str:
    """User and machine, and the home: whether a run of another one has ended cannot be told from here."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = f"uid {os.getuid()}"
    usual = home.path == Path("~/.local/state/nodeprep").expanduser()
    return f"{user}@{platform.node()}" + ("" if usual else f":{home.path}")


def _goes_on(home: Home, run: str) -> bool:
    """Whether an earlier run of this controller is still at work; True when it cannot be known."""
    if not _RUN.fullmatch(run):
        return True
    path = _mark(home, run)
    try:
        mark = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    try:
        fcntl.flock(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    else:
        path.unlink(missing_ok=True)
        return False
    finally:
        os.close(mark)


def _mark(home: Home, run: str) -> Path:
    return home.path / "claims" / run
