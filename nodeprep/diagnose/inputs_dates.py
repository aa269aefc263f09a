"""Years for dates that have none, from the other inputs or from when a file was written."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from nodeprep.diagnose.inputs_bytes import ByteSource, Truncated
from nodeprep.diagnose.inputs_input import Input
from nodeprep.diagnose.inputs_report import SectionReport
from nodeprep.diagnose.line import Line
from nodeprep.diagnose.reader import NO_YEAR

_SAMPLE_BYTES = 1 << 16
_YEARS = range(2007, 2100)
"""The driver's first Xids to far away; other numbers of four digits are no years."""
_CLOCK_SLACK = timedelta(days=1)

# Dates at the places where logs and tools put the time of writing; a release date inside a message
# ("NVRM: loading ... Wed Nov 30 06:39:21 UTC 2022") is none.
_DATES = (
    re.compile(
        rb"(?m)^(?:\W{0,2}|.{0,24}?[\s\"':(\[])(?P<y>20\d{2})-(?P<m>\d{2})-(?P<d>\d{2})[T ]\d{2}:\d{2}:\d{2}"
    ),
    re.compile(
        rb"(?m)^(?:\[|Timestamp\s{1,60}: |Date: |<timestamp>|)"
        rb"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) (?P<b>[A-Z][a-z]{2}) {1,2}(?P<d>\d{1,2}) "
        rb"\d{2}:\d{2}:\d{2} (?:[A-Z]{3,4} )?(?P<y>20\d{2})"
    ),
)
_MONTHS = b"Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()


@dataclass(frozen=True, slots=True)
class _Anchor:
    """A day near which the inputs were written, and how it is known."""

    day: datetime
    why: str
    latest: bool
    """Nothing is younger than this day."""


class Calendar:
    """Finds the year of dates without one.

    The inputs of one diagnosis belong to one story, so a full date in any of them tells more than the
    time of a file, which a copy sets anew.
    """

    def __init__(self, own: dict[str, datetime], others: Sequence[datetime]) -> None:
        self._own = own
        self._others = sorted(others)

    @classmethod
    def of(cls, inputs: Sequence[Input]) -> Calendar:
        """Looks at the beginning of every input; standard input cannot be read twice."""
        own: dict[str, datetime] = {}
        for each in inputs:
            if each.unreadable or each.size_bytes is None:
                continue
            dates = sorted(_dates_in(_sample(each)))
            if dates:
                own[each.name] = dates[len(dates) // 2]
        return cls(own, list(own.values()))

    def dated(self, line: Line, source: Input, told: SectionReport) -> Line:
        """The line with a whole date; says in the report where the year is from."""
        if line.time is None or line.time.year != NO_YEAR:
            return line
        anchor = self._anchor(source)
        time = _near(line.time, anchor)
        note = f"its dates have no year; {anchor.why}"
        if note not in told.notes:
            told.notes.append(note)
        return replace(line, time=time)

    def _anchor(self, source: Input) -> _Anchor:
        if source.name in self._own:
            return _Anchor(self._own[source.name], "taken from full dates in the same input", latest=False)
        if self._others:
            middle = self._others[len(self._others) // 2]
            return _Anchor(middle, "taken from full dates in the other inputs", latest=False)
        if source.written is not None:
            return _Anchor(source.written, "taken from the time of the file", latest=True)
        return _Anchor(datetime.now(UTC), "taken to be the past twelve months", latest=True)


@lru_cache(maxsize=65536)
def _near(time: datetime, anchor: _Anchor) -> datetime:
    candidates = []
    for year in (anchor.day.year - 1, anchor.day.year, anchor.day.year + 1, anchor.day.year - 2):
        try:
            candidates.append(time.replace(year=year))
        except ValueError:
            # 29 February of another year.
            continue
    if anchor.latest:
        past = [each for each in candidates if each <= anchor.day + _CLOCK_SLACK]
        return max(past, default=time)
    return min(candidates, key=lambda each: abs(each - anchor.day), default=time)


def _sample(source: Input) -> bytes:
    try:
        return next(ByteSource(source).blocks(), b"")[:_SAMPLE_BYTES]
    except (Truncated, OSError):
        return b""


def _dates_in(sample: bytes) -> list[datetime]:
    found = []
    for pattern in _DATES:
        for match in pattern.finditer(sample):
            parts = match.groupdict()
            month = _MONTHS.index(parts["b"]) + 1 if parts.get("b") in _MONTHS else int(parts.get("m") or 0)
            if int(parts["y"]) not in _YEARS:
                continue
            try:
                found.append(datetime(int(parts["y"]), month, int(parts["d"]), tzinfo=UTC))
            except ValueError:
                continue
    return found
