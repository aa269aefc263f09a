"""Dates of logs: with and without year, zone, or fraction."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from functools import lru_cache

from nodeprep.diagnose.reader import NO_YEAR

MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
# Of other languages, in any alphabet, or numbered as in China and Japan. Letters are what is neither ASCII
# punctuation nor a digit, since the same pattern looks at bytes.
OTHER_MONTH = r"(?:[^\x00-@\[-`{-\x7f]{2,16}\.?|\d{1,2}月)"
WEEKDAY = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)"
CLOCK = r"\d{2}:\d{2}:\d{2}"
ISO = rf"\d{{4}}-\d{{2}}-\d{{2}}[T ]{CLOCK}(?:[.,]\d{{1,9}})?(?: ?(?:Z|UTC|[+-]\d{{2}}:?\d{{2}}))?"
NO_ZONE_NOTE = "its times name no zone; read as UTC"

_ISO = re.compile(
    r"(\d{4})-(\d{2})-(\d{2})[T ](\d{2}):(\d{2}):(\d{2})(?:[.,](\d{1,9}))?(?: ?(Z|UTC|[+-]\d{2}:?\d{2}))?"
)
_NAMES = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
# Source: glibc locales, abmon of de, fr, es, pt, it, nl, pl and ru; where none differs from English, nothing.
_OTHER_NAMES = (
    "janv ene gen sty янв",
    "févr fev lut фев",
    "mär mars mrt мар",
    "avr avril abr kwi апр",
    "mai may mag mei maj май мая",
    "juin giu cze июн",
    "juil lug lip июл",
    "août ago sie авг",
    "sept set wrz сен",
    "okt ott out paź окт",
    "lis ноя",
    "dez déc dic gru дек",
)
_MONTHS = {name.lower(): number for number, name in enumerate(_NAMES, start=1)} | {
    name: number for number, names in enumerate(_OTHER_NAMES, start=1) for name in names.split()
}


@lru_cache(maxsize=4096)
def iso(text: str) -> tuple[datetime | None, bool]:
    """A date in ISO 8601 and whether it names its zone; UTC is taken when it does not."""
    match = _ISO.fullmatch(text)
    if match is None:
        return None, False
    year, month, day, hour, minute, second, fraction, zone = match.groups()
    made = make(int(year), int(month), int(day), f"{hour}:{minute}:{second}", fraction or "")
    if made is None or zone is None:
        return made, False
    return made.replace(tzinfo=_zone(zone)), True


@lru_cache(maxsize=4096)
def month_day(month: str, day: str, clock: str, fraction: str = "", year: str = "") -> datetime | None:
    """`Nov 22 18:29:55` as UTC, in the language of the log; the year is NO_YEAR when there is none."""
    name = month.rstrip(".月").lower()
    number = int(name) if name.isdecimal() else _MONTHS.get(name, 0)
    return make(int(year or NO_YEAR), number, int(day), clock, fraction)


def make(year: int, month: int, day: int, clock: str, fraction: str = "") -> datetime | None:
    """A UTC time of its parts; None when there is no such day or hour."""
    hour, minute, second = (int(part) for part in clock.split(":"))
    micro = int(fraction[:6].ljust(6, "0")) if fraction else 0
    try:
        # A leap second is written :60.
        return datetime(year, month, day, hour, minute, min(second, 59), micro, tzinfo=UTC)
    except ValueError:
        return None


def epoch_us(microseconds: int) -> datetime | None:
    """A time of microseconds since 1970."""
    try:
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=microseconds)
    except OverflowError:
        return None


def _zone(text: str) -> timezone:
    if text in ("Z", "UTC"):
        return UTC
    hours, minutes = int(text[1:3]), int(text[-2:])
    if hours > 23 or minutes > 59:
        return UTC
    offset = timedelta(hours=hours, minutes=minutes)
    return timezone(-offset if text[0] == "-" else offset)
