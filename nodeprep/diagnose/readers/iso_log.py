"""Programs that begin a line with an ISO date: Python's logging, Java, Rust, agents, Slurm.

`2024-11-12 14:22:09,123 - root - ERROR - ...`, `2026-09-02T08:14:05Z INFO ...`, `[2024-11-12 14:22:09] ...`,
`[2024-11-12T14:22:09.123] error: ...`.
"""

from __future__ import annotations

import re

from nodeprep.diagnose.reader import Parsed
from nodeprep.diagnose.readers._log import log_reader
from nodeprep.diagnose.readers._time import ISO, NO_ZONE_NOTE, iso


def _build(match: re.Match[str]) -> Parsed | None:
    time, zoned = iso(match["time"])
    if time is None:
        return None
    return Parsed(text=match["text"], time=time, kernel=False, note="" if zoned else NO_ZONE_NOTE)


READER = log_reader(
    "iso_log", rf"\[?(?P<time>{ISO})\]?(?: |,|: |\t)(?:[-|] )?(?P<text>.*)", _build, bonus=-10
)
