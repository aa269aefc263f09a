"""One JSON object a line: agents, exporters, device plugins, containers.

The message is looked for under the names that programs use for it; all other words of the object follow
it as `name=value`, for agents put kernel messages and reasons into fields of their own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

import msgspec

from nodeprep.diagnose.reader import Parsed, Reader
from nodeprep.diagnose.readers import _losses
from nodeprep.diagnose.readers._kernel import inner
from nodeprep.diagnose.readers._log import read_by, sniff_by
from nodeprep.diagnose.readers._text import clean
from nodeprep.diagnose.readers._time import epoch_us, iso

_OPENS = re.compile(rb'\s{0,4}\{\s{0,4}"[\w@.:/ -]{1,64}"\s{0,4}:.*\}\s*,?$', re.DOTALL)
_MESSAGE = ("msg", "message", "MESSAGE", "log", "text", "body", "event", "short_message")
_TIME = ("ts", "time", "timestamp", "@timestamp", "Timestamp", "generatedTimestamp", "eventTime", "t")
_HOST = ("host", "hostname", "node", "nodeName", "node_name")
_LEAVE_OUT = frozenset({*_MESSAGE, *_TIME, *_HOST, "level", "lvl", "severity", "caller", "logger", "stream"})
_OURS = re.compile(r"gpu|nvidia|dcgm|nvml|xid|cuda|pci", re.IGNORECASE)
_MAX_DEPTH = 6
_MAX_WORDS = 200


def _parse(text: str) -> Parsed | None:
    if text.lstrip()[:1] != "{":
        return None
    try:
        entry = msgspec.json.decode(text.strip().rstrip(","))
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None
    if not isinstance(entry, dict) or "__REALTIME_TIMESTAMP" in entry:
        return None
    time = next((time for time in (_time(entry.get(name)) for name in _TIME) if time), None)
    message = next((entry[name] for name in _MESSAGE if isinstance(entry.get(name), str)), "")
    if time is None and not message and not _OURS.search(text):
        # JSON that is neither a log nor about GPUs: settings, a manifest, an answer of some service.
        return None
    words = [message.rstrip("\n"), *_others(entry)]
    stripped, uptime_s = inner(" ".join(word for word in words if word))
    return Parsed(
        text=clean(stripped.encode("utf-8", "replace")),
        time=time,
        uptime_s=uptime_s,
        host=next((entry[name] for name in _HOST if isinstance(entry.get(name), str)), ""),
        kernel=None,
    )


def _others(entry: dict[str, Any]) -> list[str]:
    words: list[str] = []
    for name, value in _leaves(entry, 0):
        words.append(f"{name}={value}")
        if len(words) >= _MAX_WORDS:
            break
    return words


def _leaves(value: Any, depth: int, name: str = "") -> Iterator[tuple[str, object]]:
    if depth > _MAX_DEPTH:
        return
    if isinstance(value, dict):
        for key, each in value.items():
            if depth or key not in _LEAVE_OUT or not isinstance(each, str | int | float):
                yield from _leaves(each, depth + 1, str(key))
    elif isinstance(value, list):
        for each in value:
            yield from _leaves(each, depth + 1, name)
    elif value is not None:
        yield name, value


def _time(value: Any) -> datetime | None:
    if isinstance(value, str):
        return iso(value)[0]
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 1e19:
        # Seconds, milliseconds, microseconds or nanoseconds since 1970; the size tells which.
        for limit, factor in ((1e11, 1e6), (1e14, 1e3), (1e17, 1.0), (1e20, 1e-3)):
            if value < limit:
                return epoch_us(int(value * factor))
    return None


_share = sniff_by(_OPENS, bonus=-1)


def _sniff(lines: Sequence[bytes]) -> int:
    known = any(_OPENS.match(line) and _parse(line.decode("utf-8", "replace")) for line in lines)
    return _share(lines) if known else 0


READER = Reader(
    id="json_lines",
    sniff=_sniff,
    read=read_by(_parse),
    wants=_losses.NEEDLES,
    opens=_OPENS,
    parse=_parse,
)
