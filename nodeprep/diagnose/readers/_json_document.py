"""JSON documents that are read whole."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from nodeprep.diagnose.line import Line
from nodeprep.diagnose.reader import RawLine
from nodeprep.diagnose.readers._document import line_of
from nodeprep.diagnose.readers._text import clean

MAX_BYTES = 32 << 20
"""No document of nodeprep is larger; what is, is not decoded."""


class Document:
    """The lines of a JSON document and what they hold.

    Attributes:
        content: The document; None when it is broken or too large.
    """

    def __init__(self, source: str, lines: Iterator[RawLine]) -> None:
        self._source = source
        self._lines = list(_bounded(lines))
        try:
            self.content: Any = msgspec.json.decode(b"\n".join(line.data for line in self._lines))
        except (msgspec.DecodeError, ValueError, RecursionError):
            self.content = None

    def get(self, *path: str) -> Any:
        """What lies below some keys; None when there is no such thing."""
        here = self.content
        for key in path:
            here = here.get(key) if isinstance(here, dict) else None
        return here

    def line(self, text: str, word: str = "") -> Line:
        """A line that says in words what the document says, at the place of a word in it."""
        wanted = word.encode()
        number = next((line.number for line in self._lines if wanted and wanted in line.data), 0)
        first = self._lines[0].number if self._lines else 1
        return line_of(self._source, number or first, clean(text.encode("utf-8", "replace")))


def _bounded(lines: Iterator[RawLine]) -> Iterator[RawLine]:
    size = 0
    for line in lines:
        size += len(line.data)
        if size <= MAX_BYTES:
            yield line
