"""What makes events of lines of one family."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from nodeprep.diagnose.event import Event
from nodeprep.diagnose.line import Line


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoder:
    """One family of messages.

    Attributes:
        id: The file's name.
        needles: Byte strings, one of which is in every line it can use; the prefilter drops lines
            that hold no needle of any decoder, so a family's follow-up lines need needles as well.
        decode: Events of a source's lines in order. A generator with its own state, so that an event
            of several lines (AER, SXid, fall-off) is one. Never raises on a line.
    """

    id: str
    needles: tuple[bytes, ...]
    decode: Callable[[Iterable[Line]], Iterator[Event]]
