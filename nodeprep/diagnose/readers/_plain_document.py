"""Documents of which every line speaks for itself: known by their first lines, read as they stand."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from nodeprep.diagnose.reader import Item, RawLine, Reader
from nodeprep.diagnose.readers._document import lines_of


def plain_document(name: str, telling: str, *, sure: int = 80, among: int = 40) -> Reader:
    """A reader of such documents.

    Args:
        telling: Pattern of a line that is in such a document and hardly elsewhere.
        among: How many of the first lines may come before that line.
    """
    pattern = re.compile(telling.encode())

    def sniff(lines: Sequence[bytes]) -> int:
        return sure if any(pattern.match(line) for line in lines[:among]) else 0

    def read(source: str, lines: Iterator[RawLine]) -> Iterator[Item]:
        yield from lines_of(source, lines)

    return Reader(id=name, sniff=sniff, read=read, whole=True)
