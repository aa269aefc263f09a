"""Container runtimes: CRI's `2024-11-12T14:22:09.123456789Z stdout F ...` around the program's own line."""

from __future__ import annotations

import re

from nodeprep.diagnose.reader import Parsed
from nodeprep.diagnose.readers._log import log_reader, parse_any
from nodeprep.diagnose.readers._time import ISO, iso


def _build(match: re.Match[str]) -> Parsed:
    time = iso(match["time"])[0]
    # The program's line has an envelope of its own; the runtime's clock is whole, so it counts.
    inner = parse_any(match["text"]) if not match["text"].startswith(match["time"][:10]) else None
    if inner is None:
        return Parsed(text=match["text"], time=time, kernel=False)
    return inner._replace(time=time or inner.time, note="")


READER = log_reader("container_log", rf"(?P<time>{ISO}) (?:stdout|stderr) [FP] (?P<text>.*)", _build, bonus=5)
