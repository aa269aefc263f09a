"""Text of no format known here: every line as it stands, with a time where a line is nothing but a date."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from nodeprep.diagnose.reader import Item, Parsed, RawLine, Reader
from nodeprep.diagnose.readers._log import parse_any, read_by
from nodeprep.diagnose.readers._time import CLOCK, ISO, MONTH, NO_ZONE_NOTE, WEEKDAY, iso, month_day

# What `date` prints, with and without -Is.
_DATE = re.compile(
    rf"(?P<iso>{ISO})|{WEEKDAY} (?P<month>{MONTH}) {{1,2}}(?P<day>\d{{1,2}}) (?P<clock>{CLOCK}) "
    r"(?P<zone>[A-Z]{2,5}|[+-]\d{2,4}) (?P<year>\d{4})"
)


def _sniff(lines: Sequence[bytes]) -> int:
    return 1 if lines else 0


def _parse(text: str) -> Parsed | None:
    date = _DATE.fullmatch(text)
    if date is None:
        return parse_any(text)
    if date["iso"]:
        time, zoned = iso(date["iso"])
    else:
        time = month_day(date["month"], date["day"], date["clock"], "", date["year"])
        zoned = date["zone"] in ("UTC", "GMT")
    return Parsed(text=text, time=time, note="" if zoned else NO_ZONE_NOTE)


def _read(source: str, lines: Iterator[RawLine]) -> Iterator[Item]:
    return read_by(_parse)(source, lines)


READER = Reader(id="plain", sniff=_sniff, read=_read)
