"""Go programs with `key=value` lines: `time="2024-11-12T14:22:09Z" level=error msg="..."`."""

from __future__ import annotations

import re

from nodeprep.diagnose.reader import Parsed
from nodeprep.diagnose.readers._log import log_reader
from nodeprep.diagnose.readers._time import ISO, NO_ZONE_NOTE, iso


def _build(match: re.Match[str]) -> Parsed:
    time, zoned = iso(match["time"])
    # Quotes inside a value are escaped; kernel messages in it must be found as they were.
    text = match["text"].replace('\\"', '"')
    return Parsed(text=text, time=time, kernel=False, note="" if zoned else NO_ZONE_NOTE)


READER = log_reader(
    "logfmt", rf"(?:time|ts|timestamp|t)=\"?(?P<time>{ISO})\"? (?P<text>[\w.]{{1,64}}=.*)", _build
)
