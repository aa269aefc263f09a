"""The table of `dcgmi diag`: a test a row, its remarks broken over several at the width of the column."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from nodeprep.diagnose.line import Line
from nodeprep.diagnose.reader import Item, RawLine, Reader
from nodeprep.diagnose.readers._document import line_of, lines_of

_OPENS = re.compile(rb"\s{0,4}\| Diagnostic {4,}\| Result ")
_ROW = re.compile(r"\s{0,4}\| (?P<name>.{10,40}?)\| (?P<value>.{20,80}?)\|\s*$")
# DCGM 3 writes `Fail - GPU: 0`, DCGM 4 a row `GPU0: Fail` for each.
_RESULT = re.compile(r"(?:GPU ?(?P<gpu>\d{1,3}): )?(?P<result>Pass|Fail|Skip|Warn)\b")
_FULL_CHARS = 45
_REMARKS = ("Warning", "Info", "Error")


def _sniff(lines: Sequence[bytes]) -> int:
    return 95 if any(_OPENS.match(line) for line in lines[:8]) else 0


def _read(source: str, lines: Iterator[RawLine]) -> Iterator[Item]:
    """Lines `| TEST | RESULT` and `| TEST | REMARK`, each remark whole."""
    test = ""
    held: Line | None = None
    for line in lines_of(source, lines):
        row = _ROW.match(line.text)
        name, value = (row["name"].strip(), row["value"]) if row else ("", "")
        if row and not name and held is not None and not _RESULT.match(value):
            held = line_of(source, held.number, held.text + _piece(value))
            continue
        if held is not None:
            yield held
            held = None
        if row is None:
            yield line
        elif name in _REMARKS:
            held = line_of(source, line.number, f"| {test} | {_piece(value)}")
        else:
            test = name or test
            yield line_of(source, line.number, f"| {test} | {_result(value.strip())}")
    if held is not None:
        yield held


def _piece(value: str) -> str:
    """A row of a remark: one that fills its cell goes on within a word."""
    text = value.rstrip()
    return text if len(text) >= _FULL_CHARS else f"{text} "


def _result(value: str) -> str:
    """The result of one GPU as DCGM 3 writes it."""
    row = _RESULT.match(value)
    return f"{row['result']} - GPU: {row['gpu']}" if row and row["gpu"] else value


READER = Reader(id="dcgmi_diag", sniff=_sniff, read=_read, whole=True, opens=_OPENS)
