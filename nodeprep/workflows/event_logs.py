"""The event logs of BMCs as inputs of a diagnosis, and where they ended."""

from __future__ import annotations

import io
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import BinaryIO, cast

from nodeprep.bmc import BmcTarget, LogEntry, LogMark, LogNews, connect, for_all
from nodeprep.bmc.event_log import LogPlace
from nodeprep.diagnose.inputs import Input
from nodeprep.errors import NodeprepError

EVENT_LOG = "bmc-event-log.txt"
# Over IPMI an entry is a question of its own, of 10 to 30 ms, and logs hold up to some thousand.
_READ_S = 120.0


@dataclass(frozen=True, slots=True)
class EventLog:
    """What the event log of one BMC said.

    Attributes:
        mark: Where it ended; None when it could not be read up to there.
    """

    input: Input
    mark: LogMark | None


def read_event_logs(
    targets: Mapping[str, BmcTarget], since: Mapping[str, LogMark] | None = None
) -> dict[str, EventLog]:
    """The event logs of many BMCs; one that cannot be read is an input that cannot be read.

    Args:
        since: By host, where an earlier reading ended; of the others the whole log is read.
    """
    places = since or {}
    asked = {host: (target, places.get(host)) for host, target in targets.items()}
    answers = for_all(asked, lambda one, cancelled: _read(*one, cancelled))
    return {host: _as_log(answer, host in places) for host, answer in answers.items()}


def _read(target: BmcTarget, since: LogMark | None, cancelled: threading.Event) -> tuple[LogNews, LogMark]:
    with connect(target, cancelled=cancelled, operation_s=_READ_S) as bmc:
        # Marked before it is read: what comes in between is read twice rather than never.
        now = bmc.log_mark()
        if since is None:
            # From the first entry on, and no log that was cleared before now has lost anything of ours.
            whole = {log: LogPlace({}) for log in now.logs}
            since = LogMark(last="", content="", erased_at=now.erased_at, logs=whole)
        return bmc.log_since(since), now


def _as_log(answer: tuple[LogNews, LogMark] | NodeprepError, continued: bool) -> EventLog:
    if isinstance(answer, NodeprepError):
        return EventLog(Input(name=EVENT_LOG, open=io.BytesIO, unreadable=answer.message), None)
    news, mark = answer
    nothing = "SEL has no new entries\n" if continued else "SEL has no entries\n"
    lines = [_as_line(number, entry) for number, entry in enumerate(news.entries, start=1)]
    raw = ("".join(f"{line}\n" for line in lines) or nothing).encode()
    made = Input(
        name=EVENT_LOG,
        open=lambda: cast(BinaryIO, io.BytesIO(raw)),
        size_bytes=len(raw),
        gap=news.note,
        continued=continued,
    )
    return EventLog(made, mark if news.whole else None)


def _as_line(number: int, entry: LogEntry) -> str:
    """An entry as `ipmitool sel elist` would print it, so that one reader knows both."""
    # A message of Redfish may have line ends, and is one entry all the same.
    sensor, _, event = " ".join(entry.text.split()).partition(": ")
    direction = "Deasserted" if "(deasserted" in event else "Asserted"
    time = entry.time
    if not time[:4].isdecimal() or "-" not in time:
        # Before the BMC knew the time it counts seconds from its start.
        seconds = time.partition(" ")[0]
        time = f"{number:x} | Pre-Init | {int(seconds) if seconds.isdecimal() else 0:010d}"
    return f"{time} | {sensor} | {event} | {direction}"
