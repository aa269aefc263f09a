"""Load in bursts: the model computes for part of each period and rests for what is left of it.

A service under changing demand loads power supplies harder than a steady one: what wears them is
the step. Between two blocks is the finest grain at which a model can rest.
"""

from __future__ import annotations

import time
from typing import Callable


class Burst:
    """Where in a period a pass is, and how long it must rest.

    Args:
        duty: Part of each period with load.
        period_s: 0 never rests.
        idle: Waits so many seconds.

    Attributes:
        rested_s: Seconds of rest since `begin`.
    """

    def __init__(self, duty: float, period_s: float, idle: Callable[[float], None]) -> None:
        self._busy_s = duty * period_s
        self._period_s = period_s
        self._idle = idle
        self._origin = time.monotonic()
        self.rested_s = 0.0

    @property
    def active(self) -> bool:
        """False when there is nothing to wait for, ever."""
        return self._period_s > self._busy_s

    def begin(self) -> None:
        """A pass begins."""
        self.rested_s = 0.0

    def rest(self) -> None:
        """Waits for the next period when this one's time for load is used up."""
        if not self.active:
            return
        into = (time.monotonic() - self._origin) % self._period_s
        if into < self._busy_s:
            return
        began = time.monotonic()
        self._idle(self._period_s - into)
        self.rested_s += time.monotonic() - began
