"""A message of a log, without what its format wrapped around it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Line:
    """One message.

    Attributes:
        source: Name of the input as the user knows it, with the section in it where there is one
            ("bug-report.log.gz#dmesg").
        number: Line of the input where it begins, counted from 1.
        text: The message: no time stamp, no host, no priority, no "kernel:".
        raw: As it stands in the input, for quoting; control characters replaced.
        time: Wall clock with its time zone; None when the format has none or it could not be resolved.
        uptime_s: Seconds since boot; None when the format has none.
        host: Of the log line, "" when the format names none.
        boot: Of the source: same for lines of one boot ("" unknown). Uptimes compare only within it.
        kernel: Whether the kernel said it; None when the format does not tell.
    """

    source: str
    number: int
    text: str
    raw: str
    time: datetime | None = None
    uptime_s: float | None = None
    host: str = ""
    boot: str = ""
    kernel: bool | None = None
