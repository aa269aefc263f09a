"""`ipmitool sel list -v` and `sel get`: an event as a block of names and values.

Each block becomes one line in the form of `sel elist`, so that the same words are found in both.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from nodeprep.diagnose.line import Line
from nodeprep.diagnose.reader import Item, RawLine, Reader, Remark
from nodeprep.diagnose.readers._text import clean, quote
from nodeprep.diagnose.readers._time import CLOCK, make

_OPENS = re.compile(rb"\s{0,4}SEL Record ID\s{1,20}: [0-9a-fA-F]{1,4}")
_FIELD = re.compile(r"\s{0,4}(?P<name>[A-Z][\w /()-]{1,40}?)\s{0,30}: (?P<value>.*)")
_STAMP = re.compile(rf"(?P<month>\d{{2}})/(?P<day>\d{{2}})/(?P<year>\d{{2}}|\d{{4}}) (?P<clock>{CLOCK})")
_CLOCK_NOTE = "its times are of the BMC's clock; read as UTC"


def _sniff(lines: Sequence[bytes]) -> int:
    return 93 if any(_OPENS.match(line) for line in lines[:4]) else 0


def _read(source: str, lines: Iterator[RawLine]) -> Iterator[Item]:
    yield Remark(note=_CLOCK_NOTE)
    block: dict[str, str] = {}
    number = 0
    for raw in lines:
        text = clean(raw.data)
        if _OPENS.match(raw.data):
            if block:
                yield _line(source, number, block)
            block, number = {}, raw.number
        field = _FIELD.match(text)
        if field is not None and number:
            block.setdefault(field["name"].strip(), field["value"].strip())
        elif text.strip() and not number:
            yield Line(source=source, number=raw.number, text=text, raw=quote(text), kernel=False)
    if block:
        yield _line(source, number, block)


def _line(source: str, number: int, block: dict[str, str]) -> Line:
    stamp = _STAMP.match(block.get("Timestamp", ""))
    time = None
    if stamp is not None:
        year = int(stamp["year"]) + (2000 if len(stamp["year"]) == 2 else 0)
        time = make(year, int(stamp["month"]), int(stamp["day"]), stamp["clock"])
    direction = block.get("Event Direction", "").replace("Assertion Event", "Asserted")
    sensor = f"{block.get('Sensor Type', '')} {block.get('Sensor Number', '')}".strip()
    words = [sensor, block.get("Description", ""), direction.replace("Deassertion Event", "Deasserted")]
    text = " | ".join(word for word in words if word)
    return Line(source=source, number=number, text=text, raw=quote(text), time=time, kernel=False)


READER = Reader(id="ipmi_sel_verbose", sniff=_sniff, read=_read, whole=True, opens=_OPENS)
