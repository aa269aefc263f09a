"""How far events are apart, from wall clocks, uptimes and, where there is neither, the order of lines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

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
        """From the begin of one event to that of another, negative the other way round; None when unknown."""
        return self._between(earlier.lines[0], later.lines[0])

    def gap(self, earlier: Event, later: Event) -> float | None:
        """From the end of one event to the begin of another; None when unknown."""
        return self._between(_end(earlier), later.lines[0])

    def span(self, events: Sequence[Event]) -> float | None:
        """From the begin of the first event to the end of the last one; None when unknown."""
        return self._between(events[0].lines[0], _end(events[-1]))

    def nearest(self, earlier: Event, later: Event) -> float | None:
        """As `seconds`, of the two known moments of both that are the least apart."""
        apart = [
            self._between(one, other)
            for one in (earlier.lines[0], _end(earlier))
            for other in (later.lines[0], _end(later))
        ]
        return min((each for each in apart if each is not None), key=abs, default=None)

    def _between(self, one: Line, other: Line) -> float | None:
        if one.uptime_s is not None and other.uptime_s is not None and _same_boot(one, other):
            return other.uptime_s - one.uptime_s
        begin, end = self._wall(one), self._wall(other)
        return None if begin is None or end is None else end - begin

    def within(self, earlier: Event, later: Event, window_s: float, *, slack_s: float = 0.0) -> bool:
        """Whether `later` came at most `window_s` after `earlier`, and not before it.

        Of many that are one event, the first or the last one did; of those between them no time is known.
        Without times the order of lines in one source must do: then near means a few lines apart.

        Args:
            slack_s: How much too early `later` may be; sources stamp the same moment differently.
        """
        known = [
            apart
            for one in (earlier.lines[0], _end(earlier))
            for other in (later.lines[0], _end(later))
            if (apart := self._between(one, other)) is not None
        ]
        if known:
            return any(-slack_s <= apart <= window_s for apart in known)
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


def _end(event: Event) -> Line:
    return event.last or event.lines[0]


def _same_boot(one: Line, other: Line) -> bool:
    if one.boot and other.boot:
        return one.boot == other.boot
    return one.source == other.source
