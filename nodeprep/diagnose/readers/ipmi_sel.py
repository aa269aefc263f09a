"""`ipmitool sel list` and `sel elist`, and the event log of a live BMC: one event a line.

`  1 | 09/08/2026 | 14:02:11 | Power Supply #0x74 | Failure detected | Asserted`; with `-c` commas part the
fields. The clock is the BMC's; it may run in another zone than the host's, or be wrong. Events before the BMC
knew the time are "Pre-Init".
"""

from __future__ import annotations

import re
from datetime import datetime

from nodeprep.diagnose.reader import Parsed
from nodeprep.diagnose.readers._log import log_reader
from nodeprep.diagnose.readers._time import CLOCK, ISO, iso, make

_CLOCK_NOTE = "its times are of the BMC's clock; read as UTC"
_ZONED_NOTE = "its times are of the BMC's clock, which nobody may have set"
_PATTERN = (
    r"\s{0,8}(?:(?P<number>[0-9a-f]{1,5}) ?\| ?"
    r"(?:(?:(?P<month>\d{2})/(?P<day>\d{2})/(?P<year>\d{4}|\d{2})|Pre-Init ?) ?\| ?"
    rf"(?P<clock>{CLOCK}|[\d:]{{1,12}})(?: (?P<half>[AP]M))?(?: (?P<zone>[A-Z]{{3,5}}))?) ?\| ?"
    r"(?P<text>[^|]{1,100}\|.*)|"
    rf"(?P<csv>[0-9a-f]{{1,5}}),(?P<month2>\d{{2}})/(?P<day2>\d{{2}})/(?P<year2>\d{{4}}|\d{{2}}),"
    rf"(?P<clock2>{CLOCK})(?: (?P<half2>[AP]M))?(?: [A-Z]{{3,5}})?,(?P<text3>[^,]{{1,100}},.*)|"
    rf"(?P<iso>{ISO}) ?\| ?(?P<text2>[^|]{{1,100}}\|.*)|"
    r"(?P<none>SEL has no (?:new )?entries)\s*$)"
)


def _build(match: re.Match[str]) -> Parsed:
    if match["none"]:
        return Parsed(text=match["none"], kernel=False)
    if match["iso"]:
        time, zoned = iso(match["iso"])
        note = _ZONED_NOTE if zoned else _CLOCK_NOTE
        return Parsed(text=match["text2"], time=time, kernel=False, note=note)
    if match["csv"]:
        clock = _of_day(match["clock2"], match["half2"])
        day = _day(match["year2"], match["month2"], match["day2"], clock)
        return Parsed(text=match["text3"].replace(",", " | "), time=day, kernel=False, note=_CLOCK_NOTE)
    time = None
    if match["year"] and re.fullmatch(CLOCK, match["clock"]):
        time = _day(match["year"], match["month"], match["day"], _of_day(match["clock"], match["half"]))
    return Parsed(text=match["text"], time=time, kernel=False, note=_CLOCK_NOTE)


def _day(year: str, month: str, day: str, clock: str) -> datetime | None:
    return make(int(year) + (2000 if len(year) == 2 else 0), int(month), int(day), clock)


def _of_day(clock: str, half: str | None) -> str:
    """A clock of 24 hours: in many locales ipmitool prints one of 12, with AM or PM."""
    if half is None:
        return clock
    return f"{int(clock[:2]) % 12 + (12 if half == 'PM' else 0):02d}{clock[2:]}"


READER = log_reader("ipmi_sel", _PATTERN, _build)
