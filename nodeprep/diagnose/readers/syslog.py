"""syslog, kern.log, messages, `journalctl -o short`: `Nov 22 18:29:55 host kernel: [  966.503025] NVRM: ...`.

The date has no year and no zone, and `journalctl` writes the month in the language of who asks.
The uptime is there on many Debian and Ubuntu systems and not in a
journal. `-o short-precise` has a fraction.
"""

from __future__ import annotations

import re

from nodeprep.diagnose.reader import Parsed
from nodeprep.diagnose.readers._log import log_reader
from nodeprep.diagnose.readers._syslog import AFTER_DATE, message
from nodeprep.diagnose.readers._time import CLOCK, MONTH, NO_ZONE_NOTE, OTHER_MONTH, month_day


def _build(match: re.Match[str]) -> Parsed | None:
    fraction, year = match["fraction"] or "", match["year"] or ""
    time = month_day(match["month"], match["day"], match["clock"], fraction, year)
    return message(match, time, note=NO_ZONE_NOTE) if time else None


READER = log_reader(
    "syslog",
    # Some daemons are set up to write the year after the day.
    rf"(?:<\d{{1,3}}>)?(?P<month>{MONTH}|{OTHER_MONTH}) {{1,2}}(?P<day>\d{{1,2}}) (?:(?P<year>20\d{{2}}) )?"
    rf"(?P<clock>{CLOCK})(?:\.(?P<fraction>\d{{1,6}}))? {AFTER_DATE}",
    _build,
)
