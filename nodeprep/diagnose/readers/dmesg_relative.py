"""`dmesg -H` and `-e`: `[May19 19:57] ...`, then the seconds since the line before, `[  +0.000127] ...`.

Times add up from the last minute that was printed; they are right to a minute, their order is exact.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta

from nodeprep.diagnose.line import Line
from nodeprep.diagnose.reader import Item, Parsed, RawLine, Reader, Remark
from nodeprep.diagnose.readers import _losses
from nodeprep.diagnose.readers._kernel import CALLER
from nodeprep.diagnose.readers._log import read_by, sniff_by
from nodeprep.diagnose.readers._text import clean
from nodeprep.diagnose.readers._time import MONTH, NO_ZONE_NOTE, month_day

_PATTERN = (
    r"(?:<\d{1,3}>|kern  :\w{1,8} {0,8}: )?"
    rf"\[(?:(?P<month>{MONTH})(?P<day>\d{{1,2}}) (?P<clock>\d{{2}}:\d{{2}})|"
    rf" *\+(?P<delta>\d{{1,9}}\.\d{{6}}))\]{CALLER} ?(?P<text>.*)"
)
_COMPILED = re.compile(_PATTERN, re.DOTALL)
_OPENS = re.compile(_PATTERN.encode(), re.DOTALL)
_APPROXIMATE = "its times are differences to the line before; right to a minute"


def _parse(text: str) -> Parsed | None:
    match = _COMPILED.match(text)
    if match is None:
        return None
    time = None
    if match["month"]:
        time = month_day(match["month"], match["day"], f"{match['clock']}:00")
    return Parsed(text=match["text"], time=time, kernel=True)


def _read(source: str, lines: Iterator[RawLine]) -> Iterator[Item]:
    yield Remark(note=_APPROXIMATE)
    yield Remark(note=NO_ZONE_NOTE)
    clock: datetime | None = None
    deltas: dict[int, float] = {}

    def noted() -> Iterator[RawLine]:
        for raw in lines:
            match = _COMPILED.match(clean(raw.data))
            if match is not None and match["delta"]:
                deltas[raw.number] = float(match["delta"])
            yield raw

    for item in read_by(_parse)(source, noted()):
        if not isinstance(item, Line):
            yield item
            continue
        delta = deltas.pop(item.number, None)
        if delta is not None:
            clock = _later(clock, delta)
        elif item.time is not None:
            clock = item.time
        yield replace(item, time=clock)


def _later(clock: datetime | None, delta_s: float) -> datetime | None:
    if clock is None:
        return None
    try:
        return clock + timedelta(seconds=delta_s)
    except OverflowError:
        return clock


READER = Reader(
    id="dmesg_relative",
    sniff=sniff_by(_OPENS),
    read=_read,
    wants=_losses.NEEDLES,
    whole=True,
    opens=_OPENS,
    parse=_parse,
)
