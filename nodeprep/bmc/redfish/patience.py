"""How long a BMC is waited for, and when it is asked again."""

from __future__ import annotations

import email.utils
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from nodeprep.errors import Interrupted

PAUSES_S = (0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0)


class Clock:
    """Time, and waiting that another thread can break off; a test brings its own."""

    def __init__(self, cancelled: threading.Event | None = None) -> None:
        self.cancelled = cancelled or threading.Event()

    def now(self) -> float:
        """Seconds, of no particular origin."""
        return time.monotonic()

    def wait(self, seconds: float) -> None:
        """Waits.

        Raises:
            Interrupted: Broken off.
        """
        if self.cancelled.wait(seconds):
            raise Interrupted("the conversation with a BMC was broken off")


def _growing() -> Iterator[float]:
    yield from PAUSES_S
    while True:
        yield PAUSES_S[-1]


@dataclass
class Patience:
    """The time for one request, all its tries and pauses together."""

    clock: Clock
    seconds: float
    pauses: Iterator[float] = field(default_factory=_growing)

    def __post_init__(self) -> None:
        self._end = self.clock.now() + self.seconds

    def left(self) -> float:
        """Seconds, never below zero."""
        return max(0.0, self._end - self.clock.now())

    def pause(self, asked_s: float = 0.0) -> bool:
        """Waits before the next try; False, without waiting, when there is no time for another.

        Args:
            asked_s: What the BMC asked for; it is never asked sooner.
        """
        pause = max(next(self.pauses), asked_s)
        if pause >= self.left():
            return False
        self.clock.wait(pause)
        return True


def retry_after_s(headers: Mapping[str, str], now: datetime | None = None) -> float:
    """The header Retry-After in seconds, from either of its forms; 0 when there is none."""
    value = headers.get("retry-after", "").strip()
    if value.isdecimal():
        return float(value)
    try:
        when = email.utils.parsedate_to_datetime(value)
    except ValueError:
        return 0.0
    if when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    return max(0.0, (when - (now or datetime.now(UTC))).total_seconds())
