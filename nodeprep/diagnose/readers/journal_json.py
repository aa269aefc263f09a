"""`journalctl -o json`, `json-seq` and `json-sse`: one object a line, its message under MESSAGE.

MESSAGE is a list of numbers where it is no clean UTF-8; names of processes often are not.
Source: systemd, docs/JOURNAL_EXPORT_FORMATS.md.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from nodeprep.diagnose.reader import Parsed, Reader
from nodeprep.diagnose.readers import _losses
from nodeprep.diagnose.readers._kernel import inner
from nodeprep.diagnose.readers._log import read_by, sniff_by
from nodeprep.diagnose.readers._text import clean
from nodeprep.diagnose.readers._time import epoch_us

_OPENS = re.compile(
    rb"[\x1e ]{0,2}(?:data: )?\{.{0,4000}?\"(?:__REALTIME_TIMESTAMP|__CURSOR|_BOOT_ID|_TRANSPORT)\"",
    re.DOTALL,
)
_RECORD_MARKS = "\x1e\ufffd \t"


def fields_of(entry: dict[str, Any]) -> Parsed | None:
    """A journal entry as a message; None when it has none."""
    message = _text(entry.get("MESSAGE"))
    if message is None:
        return None
    stamp = _number(entry.get("_SOURCE_REALTIME_TIMESTAMP")) or _number(entry.get("__REALTIME_TIMESTAMP"))
    # The kernel's own clock where there is one: the other says when the journal took the message.
    uptime = _number(entry.get("_SOURCE_MONOTONIC_TIMESTAMP")) or _number(entry.get("__MONOTONIC_TIMESTAMP"))
    priority = _number(entry.get("PRIORITY"))
    kernel = entry.get("_TRANSPORT") == "kernel" or (
        "_TRANSPORT" not in entry and entry.get("SYSLOG_IDENTIFIER") == "kernel"
    )
    text, inside_s = inner(message) if kernel else (message, None)
    return Parsed(
        text=text,
        time=epoch_us(stamp) if stamp is not None else None,
        uptime_s=_first(inside_s, uptime / 1e6 if kernel and uptime is not None else None),
        host=_text(entry.get("_HOSTNAME")) or "",
        kernel=kernel,
        priority=priority if priority is not None and 0 <= priority <= 7 else None,
    )


def _parse(text: str) -> Parsed | None:
    body = text.lstrip(_RECORD_MARKS).removeprefix("data: ")
    if not body.startswith("{"):
        return None
    try:
        entry = msgspec.json.decode(body)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None
    if not isinstance(entry, dict) or not ("__REALTIME_TIMESTAMP" in entry or "_TRANSPORT" in entry):
        return None
    return fields_of(entry)


def _first(one: float | None, other: float | None) -> float | None:
    return other if one is None else one


def _text(value: Any) -> str | None:
    if isinstance(value, str):
        return clean(value.encode("utf-8", "replace"))
    if isinstance(value, list):
        if value and isinstance(value[0], str):
            # A field that a message has twice comes as a list of its values.
            return " ".join(each for each in value if isinstance(each, str))
        if all(isinstance(each, int) and 0 <= each <= 255 for each in value):
            return clean(bytes(value))
    return None


def _number(value: Any) -> int | None:
    text = str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 18 else None


READER = Reader(
    id="journal_json",
    sniff=sniff_by(_OPENS),
    read=read_by(_parse),
    wants=_losses.NEEDLES,
    opens=_OPENS,
    parse=_parse,
)
