"""How far events are apart, from wall clocks, uptimes and, where there is neither, the order of lines."""

from __future__ import annotations

from collections.abc import Iterable

from nodeprep.diagnose.event import Event
from nodeprep.diagnose.line import Line


class Clock:
    """Times of one diagnosis.

    A line with both a wall clock and an uptime ties the two for its boot, so that a ring buffer can be
    compared with a journal of the same boot.
    """

    def __init__(self, events: Iterable[Event]) -> None:
        self._boot_began: dict[str, float] = {}
        self._sources: dict[str, int] = {}
        for event in events:
            for line in event.lines:
                self._sources.setdefault(line.source, len(self._sources))
                if line.time is not None and line.uptime_s is not None and line.boot:
                    self._boot_began.setdefault(line.boot, line.time.timestamp() - line.uptime_s)

    def wall(self, event: Event) -> float | None:
        """When an event began, seconds of Unix time; None when that cannot be told."""
        return self._wall(event.lines[0])

    def _wall(self, line: Line) -> float | None:
        if line.time is not None:
            return line.time.timestamp()
        if line.uptime_s is not None and line.boot in self._boot_began:
            return self._boot_began[line.boot] + line.uptime_s
        return None

    def seconds(self, earlier: Event, later: Event) -> float | None:
        """From one event to another, negative when it is the other way round; None when unknown."""
        one, other = earlier.lines[0], later.lines[0]
        if one.uptime_s is not None and other.uptime_s is not None and _same_boot(one, other):
            return other.uptime_s - one.uptime_s
        begin, end = self._wall(one), self._wall(other)
        return None if begin is None or end is None else end - begin

    def within(self, earlier: Event, later: Event, window_s: float, *, slack_s: float = 0.0) -> bool:
        """Whether `later` came at most `window_s` after `earlier`, and not before it.

        Without times the order of lines in one source must do: then near means a few lines apart.

        Args:
            slack_s: How much too early `later` may be; sources stamp the same moment differently.
        """
        apart = self.seconds(earlier, later)
        if apart is not None:
            return -slack_s <= apart <= window_s
        one, other = earlier.lines[0], later.lines[0]
        return one.source == other.source and 0 <= other.number - one.number <= _NEAR_LINES

    def ordered(self, events: Iterable[Event]) -> tuple[Event, ...]:
        """Events by time; those of sources without one after the others, in the order of their lines."""

        def key(event: Event) -> tuple[int, float, int, int]:
            line = event.lines[0]
            wall = self._wall(line)
            source = self._sources[line.source]
            if wall is not None:
                return 0, wall, source, line.number
            if line.uptime_s is not None:
                return 1, line.uptime_s if not line.boot else 0.0, source, line.number
            return 2, 0.0, source, line.number

        return tuple(sorted(events, key=key))


_NEAR_LINES = 30


def _same_boot(one: Line, other: Line) -> bool:
    if one.boot and other.boot:
        return one.boot == other.boot
    return one.source == other.source
