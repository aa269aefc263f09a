"""One event that several logs tell is one event.

The kernel's ring buffer, the journal, syslog and the sections of a bug report hold the same messages, with
other clocks: seconds since boot, wall clock, or both.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from statistics import median

from nodeprep.diagnose.event import Event
from nodeprep.diagnose.line import Line

WINDOW_S = 2.0
"""The journal stamps a message when it takes it, not when the kernel says it; the delay stays below this."""
_SAME_UPTIME_S = 0.001
_MIN_CONTAINED = 20
"""Characters from which on a text inside another one is the same message, passed on by an agent."""


def merge(events: Iterable[Event]) -> tuple[Event, ...]:
    """The events without repetitions from other sources; what is kept has the lines of all of them.

    Two events are one when kind, device, host and text agree, they are of different sources, and no more
    than WINDOW_S apart. Repetitions within one source happened.
    """
    given = list(events)
    clock = _Clock(given)
    # By moment, so that each is compared with few others.
    moments: dict[tuple[str, str, str, int], list[_Kept]] = defaultdict(list)
    kept: list[_Kept] = []
    for event in given:
        keys = [(event.kind, event.device, *moment) for moment in clock.moments(event.lines[0])]
        near = (
            each
            for kind, device, clock_name, number in keys
            for beside in (number, number - 1, number + 1)
            for each in moments.get((kind, device, clock_name, beside), ())
        )
        twin = next((each for each in near if each.tells(event, clock)), None)
        if twin is None:
            twin = _Kept(event)
            kept.append(twin)
        else:
            twin.add(event)
        for key in keys:
            moments[key].append(twin)
    return tuple(each.event(clock) for each in kept)


class _Clock:
    """Ties seconds since boot to the wall clock, for each boot as a source has it."""

    def __init__(self, events: Sequence[Event]) -> None:
        self._began: dict[str, float] = {}
        lines = [line for event in events for line in event.lines]
        told: dict[str, list[float]] = defaultdict(list)
        for line in lines:
            if line.time is not None and line.uptime_s is not None:
                told[line.boot].append(line.time.timestamp() - line.uptime_s)
        self._began.update({boot: median(values) for boot, values in told.items()})
        self._tie_by_text(lines)

    def _tie_by_text(self, lines: Sequence[Line]) -> None:
        """Without uptimes in the journal: by messages that it and the ring buffer have once each."""
        uptimes: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
        walls: dict[str, set[float]] = defaultdict(set)
        for line in lines:
            if line.time is not None:
                walls[line.text.strip()].add(line.time.timestamp())
            elif line.uptime_s is not None and line.boot not in self._began:
                uptimes[line.boot][line.text.strip()].append(line.uptime_s)
        for boot, texts in uptimes.items():
            begins = [
                next(iter(walls[text])) - found[0]
                for text, found in texts.items()
                if len(set(found)) == 1 and len(walls.get(text, ())) == 1
            ]
            middle = median(begins) if begins else 0.0
            if begins and all(abs(each - middle) <= WINDOW_S for each in begins):
                self._began[boot] = middle

    def wall(self, line: Line) -> float | None:
        """Seconds of Unix time; None when unknown."""
        if line.time is not None:
            return line.time.timestamp()
        if line.uptime_s is not None and line.boot in self._began:
            return self._began[line.boot] + line.uptime_s
        return None

    def moments(self, line: Line) -> list[tuple[str, int]]:
        """The steps of WINDOW_S, by each clock that is known, in which a line was said."""
        wall = self.wall(line)
        found = [] if wall is None else [("wall", int(wall // WINDOW_S))]
        return found if line.uptime_s is None else [*found, ("uptime", int(line.uptime_s // WINDOW_S))]

    def near(self, one: Line, other: Line) -> bool:
        """Whether two lines of different sources may be of the same moment."""
        begin, end = self.wall(one), self.wall(other)
        if begin is not None and end is not None:
            return abs(begin - end) <= WINDOW_S
        if one.uptime_s is not None and other.uptime_s is not None:
            # Two copies of one ring buffer; of two boots, no uptimes would agree so well.
            return abs(one.uptime_s - other.uptime_s) <= _SAME_UPTIME_S
        return False


class _Kept:
    """An event and its repetitions."""

    def __init__(self, event: Event) -> None:
        self._events = [event]
        self._sources = {event.lines[0].source}
        self._text = event.lines[0].text.strip()

    def tells(self, event: Event, clock: _Clock) -> bool:
        """Whether this is the same event from another source."""
        line = event.lines[0]
        first = self._events[0].lines[0]
        if line.source in self._sources or (line.host and first.host and line.host != first.host):
            return False
        return _same_text(self._text, line.text.strip()) and clock.near(first, line)

    def add(self, event: Event) -> None:
        """Takes a repetition."""
        self._events.append(event)
        self._sources.add(event.lines[0].source)

    def event(self, clock: _Clock) -> Event:
        """One event: the one that knows its time best, with the lines of the others after its own."""
        best = max(self._events, key=lambda each: _known(each.lines[0]))
        others = [line for each in self._events if each is not best for line in each.lines]
        lines = tuple(_dated(line, clock) for line in (*best.lines, *others))
        count = max(each.count for each in self._events)
        ends = [_dated(each.last, clock) for each in self._events if each.last]
        last = max(ends, key=lambda line: clock.wall(line) or 0.0, default=None)
        return replace(best, lines=lines, count=count, last=last)


def _known(line: Line) -> int:
    return 2 * (line.time is not None) + (line.uptime_s is not None)


def _dated(line: Line, clock: _Clock) -> Line:
    """The line with the wall clock that its uptime stands for, where that is known."""
    wall = clock.wall(line)
    if line.time is not None or wall is None:
        return line
    return replace(line, time=datetime.fromtimestamp(wall, tz=UTC))


def _same_text(one: str, other: str) -> bool:
    if one == other:
        return True
    shorter, longer = sorted((one, other), key=len)
    return len(shorter) >= _MIN_CONTAINED and shorter in longer
