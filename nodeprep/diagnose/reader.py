"""What reads one format."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from nodeprep.diagnose.event import Event
from nodeprep.diagnose.line import Line

Item: TypeAlias = Line | Event
"""Logs yield lines; a document that is no log (nvidia-smi -q, lspci -vvv) yields events at once."""


@dataclass(frozen=True, slots=True)
class RawLine:
    """A line of an input before its format is known: number from 1, bytes without the line end."""

    number: int
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """One format.

    Attributes:
        id: The file's name, and `inputs[].format` of the diagnosis.
        sniff: How sure it is, 0 to 100, that these first lines are in its format; never raises.
        read: Items of a section. Lazy, never raises on bad input: what it cannot read it yields as a
            plain Line without time, or counts as a gap.
        wants: Needles (lower case) of lines it must see besides those that decoders want, for its
            own bookkeeping (boot markers, gaps); all lines when it is no log.
    """

    id: str
    sniff: Callable[[Sequence[bytes]], int]
    read: Callable[[str, Iterator[RawLine]], Iterator[Item]]
    wants: tuple[bytes, ...] = ()
    whole: bool = False
    """True: a document, read whole without the prefilter."""
