"""The BMC's event log (IPMI: SEL; Redfish: several logs) as every protocol tells it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class LogPlace:
    """A place in one of the logs of a BMC over Redfish.

    Attributes:
        known: The entries nearest to the log's end, and what each said: by identity, a digest. A BMC that
            counts a repeated event on its old entry (HPE) changes the digest and adds no entry.
        start: How many entries came before the first of these, in a log whose oldest come first.
    """

    known: Mapping[str, str]
    start: int = 0


@dataclass(frozen=True, slots=True)
class LogMark:
    """A place in an event log, so that later only what came after it is told. Plain, to be kept as JSON.

    Attributes:
        last: Identity of the last record at that time; empty when the log was empty.
        content: The record itself (hex); a log that was cleared gives old identities to new records.
        erased_at: When something was last erased from the log, by the BMC's clock.
        logs: Over Redfish, by the URI of the log; the other attributes say nothing then.
    """

    last: str
    content: str
    erased_at: int
    logs: Mapping[str, LogPlace] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One record.

    Attributes:
        time: By the BMC's clock, which nobody may have set; "" when the record has none.
        raw: All bytes of the record (IPMI, hex), or the entry (Redfish, JSON), for what the words leave out.
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
        whole: False when newer entries are left that could not be read this time, and may be the next time.
    """

    entries: tuple[LogEntry, ...]
    note: str = ""
    whole: bool = True
