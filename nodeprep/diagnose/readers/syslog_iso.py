"""rsyslog's own format and `journalctl -o short-iso`: `2026-01-02T03:04:05.123456+00:00 host kernel: ...`.

`-o short-full` (`Fri 2026-01-02 03:04:05 UTC`), `-o with-unit` and `-o short-unix` (seconds since 1970) are
read as well, and RFC 5424 with its version before the date.
"""

from __future__ import annotations

import re

from nodeprep.diagnose.reader import Parsed
from nodeprep.diagnose.readers._log import log_reader
from nodeprep.diagnose.readers._syslog import AFTER_DATE, message
from nodeprep.diagnose.readers._time import ISO, NO_ZONE_NOTE, WEEKDAY, epoch_us, iso

_PATTERN = (
    rf"(?:<\d{{1,3}}>(?:1 )?)?(?:(?:{WEEKDAY} )?(?P<time>{ISO})(?: (?P<zone>[A-Z]{{3,5}}))?|"
    rf"(?P<unix>\d{{9,11}})\.(?P<micro>\d{{6}})) {AFTER_DATE}"
)
_LOCAL_ZONE_NOTE = "its times name a zone by letters that do not tell which; read as UTC"


def _build(match: re.Match[str]) -> Parsed | None:
    if match["unix"]:
        return message(match, epoch_us(int(match["unix"]) * 1_000_000 + int(match["micro"])))
    time, zoned = iso(match["time"])
    if time is None:
        return None
    note = "" if zoned else NO_ZONE_NOTE if not match["zone"] else _LOCAL_ZONE_NOTE
    return message(match, time, note=note)


READER = log_reader("syslog_iso", _PATTERN, _build)
