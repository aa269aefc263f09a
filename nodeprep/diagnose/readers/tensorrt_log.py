"""TensorRT's logs: `[11/12/2024-14:22:31] [E] [TRT] 1: ...`."""

from __future__ import annotations

import re

from nodeprep.diagnose.reader import Parsed
from nodeprep.diagnose.readers._log import log_reader
from nodeprep.diagnose.readers._time import CLOCK, NO_ZONE_NOTE, make


def _build(match: re.Match[str]) -> Parsed:
    time = make(int(match["year"]), int(match["month"]), int(match["day"]), match["clock"])
    return Parsed(text=match["text"], time=time, kernel=False, note=NO_ZONE_NOTE)


READER = log_reader(
    "tensorrt_log",
    rf"\[(?P<month>\d{{2}})/(?P<day>\d{{2}})/(?P<year>\d{{4}})-(?P<clock>{CLOCK})\] (?P<text>\[[A-Z]\] .*)",
    _build,
)
