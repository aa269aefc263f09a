"""/var/log/fabricmanager.log and nvlsm.log: `[Jan 02 2024 03:04:05] [ERROR] [tid 1234] ...`."""

from __future__ import annotations

import re

from nodeprep.diagnose.reader import Parsed
from nodeprep.diagnose.readers._log import log_reader
from nodeprep.diagnose.readers._time import CLOCK, MONTH, NO_ZONE_NOTE, month_day


def _build(match: re.Match[str]) -> Parsed:
    time = month_day(match["month"], match["day"], match["clock"], "", match["year"])
    return Parsed(text=match["text"], time=time, kernel=False, note=NO_ZONE_NOTE)


READER = log_reader(
    "fabric_manager_log",
    rf"\[?(?P<month>{MONTH}) (?P<day>\d{{1,2}}) (?P<year>\d{{4}}) (?P<clock>{CLOCK})\]? (?P<text>\[.*)",
    _build,
)
