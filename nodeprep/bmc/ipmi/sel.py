"""The system event log over IPMI. Source: IPMI 2.0, 31.2 Get SEL Info, 31.5 Get SEL Entry, 32 SEL Records."""

from __future__ import annotations

from datetime import UTC, datetime

from nodeprep.bmc.event_log import LogEntry, LogMark, LogNews
from nodeprep.bmc.failures import BmcRefused, BmcUnreachable
from nodeprep.bmc.ipmi.sel_words import record_words
from nodeprep.bmc.ipmi.session import Asking

# Source: IPMI 2.0, table 31-2: sizes of the log are counted up to 64 KiB, which is so many records.
MOST_ENTRIES = 4096
_STORAGE = 0x0A
_INFO, _ENTRY = 0x40, 0x43
_FIRST, _LAST = 0x0000, 0xFFFF
_NO_RECORD = 0xCB
_WHOLE_RECORD = 0xFF
_RECORD_BYTES = 16
# Times below count seconds since the BMC's start: its clock was not set. Source: IPMI 2.0, section 37.
_CLOCK_SET = 0x20000000
_NO_TIME = 0xFFFFFFFF


def mark(session: Asking) -> LogMark:
    """The present end of the log."""
    info = _info(session)
    last = _entry(session, _LAST)
    if last is None:
        return LogMark("", "", info.erased_at)
    return LogMark(str(_record_id(last[1])), last[1].hex(), info.erased_at)


def since(session: Asking, place: LogMark, *, most_entries: int = MOST_ENTRIES) -> LogNews:
    """What was recorded after the mark, oldest first; only that much of the log is read."""
    info = _info(session)
    notes = []
    whole = True
    start, lost = _start(session, place, erased=info.erased_at != place.erased_at)
    notes += [lost] if lost else []
    entries: list[LogEntry] = []
    seen: set[int] = set()
    while start != _LAST:
        if len(entries) == most_entries:
            whole = False
            notes.append(f"only the first {most_entries} entries are read")
            break
        try:
            found = _entry(session, start)
        except BmcUnreachable as error:
            if not entries:
                raise
            notes.append(f"what comes after its first {len(entries)} entries is not read: {error.message}")
            whole = False
            break
        if found is None:
            notes += ["the log was cleared while it was read"] if start != _FIRST else []
            break
        start, record = found
        if _record_id(record) in seen:
            notes.append("the BMC's log does not end; what follows is not read")
            break
        seen.add(_record_id(record))
        entries.append(_told(record))
    if info.overflow:
        notes.append("the log is full and the BMC drops new entries")
    return LogNews(tuple(entries), "; ".join(notes), whole=whole)


class _Info:
    def __init__(self, data: bytes) -> None:
        if len(data) < 14:
            raise BmcUnreachable(f"an event log information of {len(data)} bytes is none")
        self.erased_at = int.from_bytes(data[9:13], "little")
        self.overflow = bool(data[13] & 0x80)


def _info(session: Asking) -> _Info:
    return _Info(session.command(_STORAGE, _INFO))


def _start(session: Asking, place: LogMark, *, erased: bool) -> tuple[int, str]:
    """Identity of the first record after the mark, and what may be missing before it."""
    if not place.last:
        return _FIRST, "the log was cleared after the mark" if erased else ""
    found = _entry(session, int(place.last))
    if found is not None and found[1].hex() == place.content:
        following, _ = found
        return following, "entries were erased after the mark" if erased else ""
    # Everything in the log is younger than the record that is gone.
    if erased:
        return _FIRST, "the log was cleared after the mark; what it recorded before that is lost"
    return _FIRST, "the log has overwritten its entries since the mark; the oldest ones are lost"


def _entry(session: Asking, record: int) -> tuple[int, bytes] | None:
    """Identity of the following record (0xffff: none) and the record; None when there is no such one."""
    request = [0, 0, record & 0xFF, record >> 8, 0, _WHOLE_RECORD]
    try:
        data = session.command(_STORAGE, _ENTRY, request)
    except BmcRefused as error:
        if error.code == _NO_RECORD:
            return None
        raise
    if len(data) < 2 + _RECORD_BYTES:
        raise BmcUnreachable(f"an event log entry of {len(data)} bytes is none")
    return int.from_bytes(data[:2], "little"), data[2 : 2 + _RECORD_BYTES]


def _record_id(record: bytes) -> int:
    return int.from_bytes(record[:2], "little")


def _told(record: bytes) -> LogEntry:
    # OEM records from 0xe0 on have no time.
    seconds = int.from_bytes(record[3:7], "little") if record[2] < 0xE0 else _NO_TIME
    return LogEntry(str(_record_id(record)), _time(seconds), record_words(record), record.hex())


def _time(seconds: int) -> str:
    if seconds == _NO_TIME:
        return ""
    if seconds < _CLOCK_SET:
        return f"{seconds} s after the BMC's start"
    # The zone is unknown: BMCs keep UTC or local time and do not say which.
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")
