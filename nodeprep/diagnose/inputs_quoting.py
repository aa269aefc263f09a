"""What tickets and mails put before the lines of a log: marks of a quotation, numbers of lines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain, islice

from nodeprep.diagnose.reader import RawLine

_QUOTED = re.compile(rb"(?:\s?>){1,5} ?(?=\S|\s*$)")
# An address of lspci begins with a number and a colon as well ("01:00.0").
_NUMBERED = re.compile(rb"\s{0,8}(?P<number>[1-9]\d{0,6})(?:[:.)\t]| {2}) ?(?![0-9a-f]{2}[.:])")
_HEAD = 8
# One number at the beginning may be of the log itself; a row that counts the lines is not.
_MIN_NUMBERED = 3


def unwrapped(lines: Iterator[RawLine]) -> Iterator[RawLine]:
    """The lines without such marks; those of a log that has none as they are."""
    head = list(islice(lines, _HEAD))
    numbered = _counts(head)
    for line in chain(head, lines):
        data = line.data
        if numbered and (match := _NUMBERED.match(data)):
            data = data[match.end() :]
        if data[:1] == b">" and (match := _QUOTED.match(data)):
            data = data[match.end() :]
        yield line if data is line.data else RawLine(line.number, data)


def _counts(head: list[RawLine]) -> bool:
    """Whether every line begins with its own number, from wherever the numbers start."""
    offsets = set()
    count = 0
    for line in head:
        if not line.data.strip():
            continue
        match = _NUMBERED.match(line.data)
        if match is None:
            return False
        offsets.add(int(match["number"]) - line.number)
        count += 1
    return count >= _MIN_NUMBERED and len(offsets) == 1
