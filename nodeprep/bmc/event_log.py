"""The BMC's event log (IPMI: SEL) as every protocol tells it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LogMark:
    """A place in an event log, so that later only what came after it is told. Plain, to be kept as JSON.

    Attributes:
        last: Identity of the last record at that time; empty when the log was empty.
        content: The record itself (hex); a log that was cleared gives old identities to new records.
        erased_at: When something was last erased from the log, by the BMC's clock.
    """

    last: str
    content: str
    erased_at: int


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One record.

    Attributes:
        time: By the BMC's clock, which nobody may have set; "" when the record has none.
        raw: All bytes of the record (hex), for what the words leave out.
    """

    record: str
    time: str
    text: str
    raw: str

    def __str__(self) -> str:
        return f"{self.time or 'no time'}: {self.text}"


@dataclass(frozen=True, slots=True)
class LogNews:
    """What an event log has recorded since a mark.

    Attributes:
        note: Why this may not be all: cleared, overwritten, full. Empty when it is all.
    """

    entries: tuple[LogEntry, ...]
    note: str = ""
