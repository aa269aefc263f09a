"""What reads one format."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple, TypeAlias

from nodeprep.diagnose.event import Event
from nodeprep.diagnose.line import Line


@dataclass(frozen=True, slots=True)
class Remark:
    """What a reader has to say about its input, beside its content.

    Attributes:
        gap: What is missing from it; nothing may be called healthy then.
        note: What was assumed in reading it; said once however often it comes.
        simulated: It is of no real node.
    """

    gap: str = ""
    note: str = ""
    simulated: bool = False


Item: TypeAlias = Line | Event | Remark
"""Logs yield lines; a document that is no log (nvidia-smi -q, lspci -vvv) yields events as well."""


@dataclass(frozen=True, slots=True)
class RawLine:
    """A line of an input before its format is known: number from 1, bytes without the line end."""

    number: int
    data: bytes


class Parsed(NamedTuple):
    """A log line without its envelope; fields as in Line.

    A time whose year is `NO_YEAR` has none; the engine finds it. `kernel` is None when the format
    does not tell.
    """

    text: str
    time: datetime | None = None
    uptime_s: float | None = None
    host: str = ""
    kernel: bool | None = None
    priority: int | None = None
    note: str = ""


NO_YEAR = 1904
"""Stands for the year that syslog leaves out; a leap year, so that every date exists in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """One format.

    Attributes:
        id: The file's name, and `inputs[].format` of the diagnosis.
        sniff: How sure it is, 0 to 100, that these first lines are in its format; never raises.
        read: Items of a section. Lazy, never raises on bad input: what it cannot read it yields as a
            plain Line without time, or counts as a gap.
        wants: Needles (exact bytes) of lines it must see besides those that decoders want, for its
            own bookkeeping (boot markers, gaps).
        whole: A document, or a log whose lines need their neighbours: read without the prefilter.
        opens: What a line looks like that can only be of this format. It makes a new section in a
            file of another format.
        parse: For formats of one message a line: that line without its envelope, None when it is of
            another format.
    """

    id: str
    sniff: Callable[[Sequence[bytes]], int]
    read: Callable[[str, Iterator[RawLine]], Iterator[Item]]
    wants: tuple[bytes, ...] = ()
    whole: bool = False
    opens: re.Pattern[bytes] | None = None
    parse: Callable[[str], Parsed | None] | None = None
