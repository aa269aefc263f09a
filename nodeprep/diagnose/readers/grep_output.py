"""Lines of logs as grep prints them from several files, also with `-n`: `kern.log.1:Nov 22 18:29:55 ...`.

Pagers and editors number lines as well: `1701 [   22.325345] ...`.
"""

from __future__ import annotations

import re

from nodeprep.diagnose.reader import Parsed
from nodeprep.diagnose.readers._log import log_reader, parse_any
from nodeprep.diagnose.readers._time import MONTH

_EXCERPT = "it holds only the lines that somebody searched for"


def _build(match: re.Match[str]) -> Parsed | None:
    parsed = parse_any(match["text"])
    return None if parsed is None else parsed._replace(note=parsed.note or _EXCERPT)


READER = log_reader(
    "grep_output",
    r"(?:[\w./-]{0,120}(?:log|messages|dmesg|journal|kern)[\w./-]{0,40}:(?:\d{1,9}[:-])?|"
    r" {0,8}\d{1,9}(?:[:-]|[ \t]{1,4}|(?=\[)))"
    rf"(?P<text>(?:{MONTH} |\d{{4}}-\d{{2}}-|\[ ?[\d A-Z]).*)",
    _build,
)
