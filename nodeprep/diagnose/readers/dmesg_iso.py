"""`dmesg --time-format iso`: `2024-12-03T16:29:18,123456+00:00 ...`, no host and no "kernel:"."""

from __future__ import annotations

import re

from nodeprep.diagnose.reader import Parsed
from nodeprep.diagnose.readers._kernel import CALLER, PRIORITY
from nodeprep.diagnose.readers._log import log_reader
from nodeprep.diagnose.readers._time import CLOCK, iso


def _build(match: re.Match[str]) -> Parsed:
    return Parsed(text=match["text"], time=iso(match["time"])[0], kernel=True)


# The comma before the fraction is what tells it from syslog's ISO dates.
READER = log_reader(
    "dmesg_iso",
    rf"{PRIORITY}(?P<time>\d{{4}}-\d{{2}}-\d{{2}}T{CLOCK},\d{{6}}[+-]\d{{2}}:?\d{{2}}){CALLER} (?P<text>.*)",
    _build,
)
