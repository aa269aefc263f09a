"""NCCL's logs: `node07:40958:40999 [0] NCCL WARN ...`, newer with `[2024-11-12 14:22:09] ` before it.

Host, process, thread and device come first; the time only where NCCL_DEBUG_TIMESTAMP_LEVELS asks for it.
"""

from __future__ import annotations

import re

from nodeprep.diagnose.reader import Parsed
from nodeprep.diagnose.readers._log import log_reader
from nodeprep.diagnose.readers._time import ISO, NO_ZONE_NOTE, iso


def _build(match: re.Match[str]) -> Parsed:
    time, zoned = iso(match["time"]) if match["time"] else (None, True)
    note = "" if zoned else NO_ZONE_NOTE
    return Parsed(text=match["text"], time=time, host=match["host"], kernel=False, note=note)


READER = log_reader(
    "nccl_log",
    rf"(?:\[(?P<time>{ISO})\] )?(?P<host>[\w.-]{{1,64}}):\d{{1,8}}:\d{{1,8}} \[\d{{1,3}}\] (?P<text>.*)",
    _build,
    bonus=2,
)
