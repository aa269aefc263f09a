"""Text of no format known here: every line as it stands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nodeprep.diagnose.reader import Item, RawLine, Reader
from nodeprep.diagnose.readers._log import parse_any, read_by


def _sniff(lines: Sequence[bytes]) -> int:
    return 1 if lines else 0


def _read(source: str, lines: Iterator[RawLine]) -> Iterator[Item]:
    return read_by(parse_any)(source, lines)


READER = Reader(id="plain", sniff=_sniff, read=_read)
