"""`dmesg` as it is, seconds since boot: `[  966.503025] NVRM: ...`; with `-r` or `-x` the priority first."""

from __future__ import annotations

import re

from nodeprep.diagnose.reader import Parsed
from nodeprep.diagnose.readers._kernel import CALLER, PRIORITY, UPTIME
from nodeprep.diagnose.readers._log import log_reader


def _build(match: re.Match[str]) -> Parsed:
    priority = match["priority"]
    return Parsed(
        text=match["text"],
        uptime_s=float(match["uptime"]),
        kernel=True,
        priority=int(priority) & 7 if priority else None,
    )


READER = log_reader("dmesg", rf"{PRIORITY}{UPTIME}{CALLER} ?(?P<text>.*)", _build)
