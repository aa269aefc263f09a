"""A Python traceback without a log around it, also with a rank before each line: `[rank0]: Traceback ...`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from nodeprep.diagnose.reader import Item, RawLine, Reader
from nodeprep.diagnose.readers._log import parse_any, read_by

_OPENS = re.compile(rb"(?:\[\w{1,16}\]: {0,4})?\s{0,4}Traceback \(most recent call last\):")


def _sniff(lines: Sequence[bytes]) -> int:
    return 15 if any(_OPENS.match(line) for line in lines) else 0


def _read(source: str, lines: Iterator[RawLine]) -> Iterator[Item]:
    return read_by(parse_any)(source, lines)


READER = Reader(id="traceback", sniff=_sniff, read=_read)
