"""`dmesg -J`: one document, `{"dmesg": [{"pri": 3, "time": 966.503025, "msg": "..."}, ...]}`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec

from nodeprep.diagnose.reader import Item, Parsed, RawLine, Reader
from nodeprep.diagnose.readers._log import read_by
from nodeprep.diagnose.readers._text import clean

_OPENS = re.compile(rb'\s{0,8}\{?\s{0,8}"dmesg"\s{0,4}:\s{0,4}\[|\{\s{0,8}"dmesg"')
# util-linux prints an entry over several lines, or all on one with some versions; the order of keys is fixed.
_ENTRY = re.compile(
    rb'"pri"\s{0,4}:\s{0,4}(?P<priority>\d{1,4}),\s{0,40}'
    rb'"time"\s{0,4}:\s{0,4}"?\s{0,12}(?P<time>\d{1,12}\.\d{1,9})"?,'
    rb'(?:\s{0,40}"caller"\s{0,4}:\s{0,4}"[^"]{0,20}",)?\s{0,40}"msg"\s{0,4}:\s{0,4}(?P<msg>"(?:[^"\\]|\\.)*")'
)
_MAX_ENTRY_LINES = 12


def _sniff(lines: Sequence[bytes]) -> int:
    head = b"\n".join(line for line in lines[:4])
    return 95 if b'"dmesg"' in head and head.lstrip().startswith(b"{") else 0


def _read(source: str, lines: Iterator[RawLine]) -> Iterator[Item]:
    current: list[Parsed | None] = [None]

    def entries() -> Iterator[RawLine]:
        for raw, parsed in _entries(lines):
            current[0] = parsed
            yield raw

    yield from read_by(lambda _text: current[0])(source, entries())


def _entries(lines: Iterator[RawLine]) -> Iterator[tuple[RawLine, Parsed]]:
    window: list[RawLine] = []
    for raw in lines:
        window.append(raw)
        if b'"msg"' not in raw.data:
            window = window[-_MAX_ENTRY_LINES:]
            continue
        text = b"\n".join(each.data for each in window)
        for match in _ENTRY.finditer(text):
            message = _string(match["msg"])
            priority, uptime_s = int(match["priority"]), float(match["time"])
            yield (
                RawLine(raw.number, message.encode("utf-8", "replace")),
                Parsed(text=message, uptime_s=uptime_s, kernel=True, priority=priority & 7),
            )
        window = []


def _string(quoted: bytes) -> str:
    try:
        value = msgspec.json.decode(quoted)
    except (msgspec.DecodeError, ValueError):
        value = quoted[1:-1].decode("utf-8", "replace")
    return clean(str(value).encode("utf-8", "replace"))


READER = Reader(id="dmesg_json", sniff=_sniff, read=_read, whole=True, opens=_OPENS)
