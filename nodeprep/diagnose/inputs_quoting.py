"""What tickets and mails make of the lines of a log: marks of a quotation, numbers, lines broken in two."""

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
# Source: RFC 3676: a line that a mail program broke ends with a space. Only lines with a time are looked at.
_BROKEN_BYTES = range(50, 82)
# The kernel ends a message at 1 KiB.
_MOST_ROWS = 20
_STAMPED = re.compile(
    rb"\[ {0,8}\d{1,9}\.\d|\[[A-Za-z]{3} |[A-Z][a-z]{2} [ \d]\d \d\d:|\d{4}-\d\d-\d\d[T ]\d"
)


def unwrapped(lines: Iterator[RawLine]) -> Iterator[RawLine]:
    """The lines whole and without such marks; those of a log that has none as they are."""
    held: RawLine | None = None
    rows = 0
    for line in _unmarked(lines):
        if held is not None and line.number == held.number + rows and _goes_on(line.data):
            held = RawLine(held.number, held.data.rstrip(b"\r") + line.data)
            rows += 1
        else:
            if held is not None:
                yield held
            held, rows = line, 1
        if rows == _MOST_ROWS or not (_is_broken(line.data) and _STAMPED.match(held.data)):
            yield held
            held = None
    if held is not None:
        yield held


def _is_broken(data: bytes) -> bool:
    data = data.rstrip(b"\r")
    return data[-1:] == b" " and len(data) in _BROKEN_BYTES


def _goes_on(data: bytes) -> bool:
    """Whether a line is the rest of the one before: nothing that begins a line of a log."""
    return data[:1] not in (b"", b" ", b"\t", b"\r") and not _STAMPED.match(data)


def _unmarked(lines: Iterator[RawLine]) -> Iterator[RawLine]:
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
