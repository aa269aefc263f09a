"""kill -9 at a chosen write or tool call of node code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from nodeprep.node import durable, trial_deadman


class Killed(BaseException):
    """Not an Exception: nothing may catch it and go on."""


class Killer:
    """Ends the process before its step number `at`; counts steps either way."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.at: int | None = None
        self.steps = 0
        self._dead = False
        for owner, name in ((durable, "put"), (trial_deadman, "_link"), (trial_deadman, "systemctl")):
            monkeypatch.setattr(owner, name, self.step(getattr(owner, name)))

    def step(self, real: Callable[..., Any]) -> Callable[..., Any]:
        """The function as one more step. After the kill it does nothing: a dead process cleans nothing up."""

        def step(*arguments: Any, **more: Any) -> Any:
            if self._dead or (self.at is not None and self.steps == self.at):
                self._dead = True
                raise Killed
            self.steps += 1
            return real(*arguments, **more)

        return step

    def survives(self, act: Callable[[], object], at: int) -> bool:
        """Whether the action was over before that step; afterwards nothing is killed any more."""
        self.steps, self.at = 0, at
        try:
            act()
        except Killed:
            return False
        finally:
            self.at, self._dead = None, False
        return True
