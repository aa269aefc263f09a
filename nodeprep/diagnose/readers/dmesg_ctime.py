"""`dmesg -T`: `[Tue Dec  3 16:29:18 2024] ...`, local time without a zone, wrong after a suspend."""

from __future__ import annotations

import re

from nodeprep.diagnose.reader import Parsed
from nodeprep.diagnose.readers._kernel import CALLER, PRIORITY
from nodeprep.diagnose.readers._log import log_reader
from nodeprep.diagnose.readers._time import CLOCK, MONTH, NO_ZONE_NOTE, month_day

# Other languages write other names of days and months, in any alphabet; China and Japan number the months.
# Letters are what is neither ASCII punctuation nor a digit, since the same pattern looks at bytes.
_NAME = r"(?:[^\x00-@\[-`{-\x7f]{1,16}\.?|\d{1,2}月)"
_PATTERN = (
    rf"{PRIORITY}\[(?:{_NAME} {{1,2}}(?P<month>{MONTH}|{_NAME}) {{1,2}}(?P<day>\d{{1,2}})|"
    rf"{_NAME} (?P<day2>\d{{1,2}})\.? (?P<month2>{MONTH}|{_NAME}))"
    rf" (?P<clock>{CLOCK}) (?P<year>\d{{4}})\]{CALLER} ?(?P<text>.*)"
)
_UNKNOWN_MONTH = "the months of its dates are in a language that is not read; its lines have no time"


def _build(match: re.Match[str]) -> Parsed:
    month, day = match["month"] or match["month2"], match["day"] or match["day2"]
    time = month_day(month, day, match["clock"], "", match["year"])
    note = NO_ZONE_NOTE if time else _UNKNOWN_MONTH
    return Parsed(text=match["text"], time=time, kernel=True, note=note)


READER = log_reader("dmesg_ctime", _PATTERN, _build)
