"""Documents that are no logs: their lines, for words that decoders know, and events of their own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

from nodeprep.diagnose.line import Line
from nodeprep.diagnose.reader import RawLine
from nodeprep.diagnose.readers._text import clean, quote


def lines_of(source: str, lines: Iterable[RawLine]) -> Iterator[Line]:
    """Every line as it stands, empty ones left out."""
    for raw in lines:
        text = clean(raw.data)
        if text.strip():
            yield line_of(source, raw.number, text)


def line_of(source: str, number: int, text: str, time: datetime | None = None) -> Line:
    """A line of a document."""
    return Line(source=source, number=number, text=text, raw=quote(text), time=time, kernel=False)
