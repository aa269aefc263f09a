"""Where a diagnosis of a live node stopped reading, so that the next one tells only what is new."""

from __future__ import annotations

import tarfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from nodeprep.bmc import LogMark
from nodeprep.diagnose.inputs import Input
from nodeprep.errors import UsageError
from nodeprep.model.codec import decode

_FOLDER = "cursors"
_FACTS, _KERNEL_LOG, _JOURNAL = "facts/now.json", "kernel.log", "journal-kernel.txt"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cursor:
    """Of one node. Plain, to be kept as JSON.

    Attributes:
        log: The `log_cursor` of the node's facts; None when it was not read.
        event_log: Of its BMC; None when it was not read.
    """

    log: Mapping[str, Any] | None = None
    event_log: LogMark | None = None


def path_of(host: str) -> str:
    """Where the cursor of a host is kept in a run folder."""
    return f"{_FOLDER}/{host}.json"


def require_cursors(run: Path) -> None:
    """Refuses what is no run folder of a diagnosis of live nodes.

    Raises:
        UsageError: It is none.
    """
    if not (run / _FOLDER).is_dir():
        raise UsageError(
            f"{run} holds no cursors of an earlier diagnosis",
            hint="name the run folder of an earlier nodeprep diagnose --host, what -o named",
        )


def load_cursors(run: Path, hosts: Iterable[str]) -> dict[str, Cursor]:
    """The cursors that an earlier run left; hosts that were not in it have none.

    Raises:
        UsageError: As `require_cursors`.
        DocumentError: A cursor is broken.
    """
    require_cursors(run)
    found: dict[str, Cursor] = {}
    for host in hosts:
        place = run / path_of(host)
        if place.is_file():
            found[host] = decode(place.read_bytes(), Cursor, source=str(place))
    return found


def cursor_of(inputs: Iterable[Input], event_log: LogMark | None, before: Cursor | None) -> Cursor:
    """Where the logs of a node end now; of what was not read this time, where they ended before."""
    log = _log_cursor(inputs)
    if before is not None:
        log = before.log if log is None else log
        event_log = before.event_log if event_log is None else event_log
    return Cursor(log=log, event_log=event_log)


def continued(inputs: Sequence[Input], cursor: Cursor) -> Iterator[Input]:
    """The inputs of a node that was asked for what came after a cursor, with what was lost in between.

    After a reboot they are whole: the logs of another boot begin with its first message.
    """
    now = _log_cursor(inputs)
    before = cursor.log or {}
    same_boot = now is not None and now.get("boot_id") == before.get("boot_id")
    for each in inputs:
        if same_boot and each.name.endswith(_JOURNAL):
            yield replace(each, continued=True)
        elif same_boot and each.name.endswith(_KERNEL_LOG):
            yield replace(each, continued=True, gap=_lost(each, (before.get("sequence") or {}).get("value")))
        else:
            yield each


def _lost(log: Input, sequence: object) -> str:
    """What the ring buffer dropped before it was read again, in words."""
    first = _read(log, 64).partition(b",")[0]
    if not first.isdigit() or not isinstance(sequence, int) or int(first) <= sequence + 1:
        return ""
    count = int(first) - sequence - 1
    return f"{count} messages after the earlier diagnosis are lost: the ring buffer was full"


def _log_cursor(inputs: Iterable[Input]) -> Mapping[str, Any] | None:
    facts = next((each for each in inputs if each.name.endswith(_FACTS)), None)
    try:
        document = msgspec.json.decode(_read(facts, -1)) if facts is not None else None
    except msgspec.DecodeError:
        return None
    found = document.get("log_cursor") if isinstance(document, dict) else None
    return found if isinstance(found, dict) else None


def _read(part: Input, most: int) -> bytes:
    """Bytes of a part; none of a broken archive, of which the diagnosis says that it is."""
    try:
        with part.open() as file:
            return file.read(most)
    except (OSError, EOFError, tarfile.TarError, zlib.error):
        return b""
