"""The kernel log from /dev/kmsg: read on from a cursor, never cleared, with losses counted.

Clearing the ring buffer before a run destroys evidence. Every record has a sequence number that
only a reboot resets, so a later look can read on from an earlier one, and records that were
overwritten in between show as a gap.
Source: Documentation/ABI/testing/dev-kmsg.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import time
from typing import Any, Dict, Iterator, List, NamedTuple, Optional

from .kernel_event import classify
from .paths import under
from .reading import Reading, error, ok

CURSOR_FIELDS = ("sequence", "monotonic_us")
FIELDS = ("events", "lost_records")

_DEVICE = "/dev/kmsg"
_RECORD_BYTES = 16384
_DEADLINE_S = 20.0
_ESCAPE = re.compile(rb"\\x([0-9a-f]{2})")


class Record(NamedTuple):
    """One record of the kernel log; `priority` is the syslog level, 0 to 7."""

    sequence: int
    monotonic_us: int
    priority: int
    text: str


def read_records(root: str) -> List[Record]:
    """All records the kernel still has, oldest first.

    Raises:
        OSError: The log cannot be read; without root most systems refuse.
        TimeoutError: Records come faster than they can be read.
        ValueError: A record is not in /dev/kmsg format.
    """
    path = under(root, _DEVICE)
    # The device blocks at its end where a file ends, whatever root it is seen through.
    is_device = stat.S_ISCHR(os.stat(path).st_mode)
    chunks = _device_records(path) if is_device else _file_records(path)
    return [parse_record(chunk) for chunk in chunks]


def parse_record(raw: bytes) -> Record:
    r"""A record such as `6,339,5140900,-;NVRM: loading ...`; continuation lines are left out.

    Raises:
        ValueError: It is not in /dev/kmsg format.
    """
    header, separator, rest = raw.partition(b";")
    fields = header.split(b",")
    if not separator or len(fields) < 4 or not all(field.isdigit() for field in fields[:3]):
        raise ValueError(f"not a kernel log record: {raw[:80]!r}")
    text = _ESCAPE.sub(lambda match: bytes([int(match.group(1), 16)]), rest.split(b"\n", 1)[0])
    return Record(int(fields[1]), int(fields[2]), int(fields[0]) & 7, text.decode("utf-8", "replace"))


def cursor(boot_id: Reading, records: Reading) -> Dict[str, Any]:
    """The "log_cursor" part of the facts: where the log stands now."""
    last: Optional[Record] = records["value"][-1] if records["state"] == "ok" and records["value"] else None
    missing = error(records.get("detail") or "the kernel log is empty")
    return {
        "boot_id": boot_id["value"] if boot_id["state"] == "ok" else "",
        "sequence": ok(last.sequence) if last else missing,
        "monotonic_us": ok(last.monotonic_us) if last else missing,
    }


def since_cursor(since: Optional[Dict[str, Any]], boot_id: Reading, records: Reading) -> Dict[str, Any]:
    """The "kernel_log" part of the facts: records of interest after a cursor.

    Without a usable cursor all records of this boot are looked at; too much evidence beats too little.
    """
    if records["state"] != "ok":
        unread = error(records["detail"])
        return {"since": since, "events": unread, "lost_records": unread}
    everything: List[Record] = records["value"]
    if since is None:
        return {"since": None, "events": _events(everything), "lost_records": ok(_lost(everything, -1))}
    problem = _cursor_problem(since, boot_id, everything)
    if problem:
        return {"since": since, "events": _events(everything), "lost_records": error(problem)}
    start = int(since["sequence"]["value"])
    newer = [record for record in everything if record.sequence > start]
    return {"since": since, "events": _events(newer), "lost_records": ok(_lost(newer, start))}


def _cursor_problem(since: Dict[str, Any], boot_id: Reading, records: List[Record]) -> str:
    if boot_id["state"] != "ok":
        return f"the boot id is unreadable, so nobody knows whether the node rebooted: {boot_id['detail']}"
    if since["boot_id"] != boot_id["value"]:
        return f"the node rebooted since the cursor (boot {since['boot_id']} then, {boot_id['value']} now)"
    if since["sequence"]["state"] != "ok":
        return f"the cursor has no position: {since['sequence'].get('detail', '')}"
    if not records or records[-1].sequence < since["sequence"]["value"]:
        return "the kernel log ends before the cursor"
    return ""


def _events(records: List[Record]) -> Reading:
    events = []
    for record in records:
        found = classify(record.text)
        if found is not None:
            event = {
                "sequence": record.sequence,
                "monotonic_us": record.monotonic_us,
                "priority": record.priority,
                "kind": found.kind,
                "text": record.text,
                "device": found.device,
                "xid": found.xid,
            }
            events.append(event)
    return ok(events)


def _lost(records: List[Record], start: int) -> int:
    """Sequence numbers that are missing after `start`."""
    return records[-1].sequence - start - len(records) if records else 0


def _device_records(path: str) -> Iterator[bytes]:
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    deadline = time.monotonic() + _DEADLINE_S
    try:
        while True:
            if time.monotonic() > deadline:
                raise TimeoutError(
                    f"the kernel log grew faster than it could be read for {_DEADLINE_S:.0f} s"
                )
            try:
                yield os.read(descriptor, _RECORD_BYTES)
            except OSError as problem:
                if problem.errno == errno.EAGAIN:
                    return
                if problem.errno != errno.EPIPE:  # overwritten while we read: the gap tells how many
                    raise
    finally:
        os.close(descriptor)


def _file_records(path: str) -> Iterator[bytes]:
    with open(path, "rb") as file:
        record = b""
        for line in file:
            if record and not line.startswith(b" "):
                yield record
                record = b""
            record += line
        if record:
            yield record
