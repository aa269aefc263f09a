"""vLLM's logs: `ERROR 06-03 10:14:22 [worker_base.py:148] ...`, newer with `(EngineCore pid=5004) ` first."""

from __future__ import annotations

import re

from nodeprep.diagnose.reader import NO_YEAR, Parsed
from nodeprep.diagnose.readers._log import log_reader
from nodeprep.diagnose.readers._syslog import LEVEL
from nodeprep.diagnose.readers._time import CLOCK, NO_ZONE_NOTE, make


def _build(match: re.Match[str]) -> Parsed:
    time = make(NO_YEAR, int(match["month"]), int(match["day"]), match["clock"])
    return Parsed(text=match["text"], time=time, kernel=False, note=NO_ZONE_NOTE)


READER = log_reader(
    "vllm_log",
    rf"(?:\([^()]{{1,80}}\) )?{LEVEL} (?P<month>\d{{2}})-(?P<day>\d{{2}}) (?P<clock>{CLOCK})(?:\.\d{{1,6}})? "
    r"\[?[\w./<>-]{1,120}:\d{1,6}\] ?(?P<text>.*)",
    _build,
)
