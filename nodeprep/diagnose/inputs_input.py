"""One file to read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import BinaryIO


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """One file to read.

    Attributes:
        name: As the user knows it: the path as typed, or the path below the folder that was typed.
        open: Its raw bytes, from the start.
        size_bytes: As stored; None when it is not known before it was read.
        written: When it was last written; None for what is no file.
        unreadable: Why it cannot be read; "" when it seems that it can.
        gap: What is known to be missing from it before it is read.
        continued: It goes on where an earlier diagnosis stopped reading: its beginning is not missing, and
            it may be empty.
    """

    name: str
    open: Callable[[], BinaryIO]
    size_bytes: int | None = None
    written: datetime | None = None
    unreadable: str = ""
    gap: str = ""
    continued: bool = False
