"""`journalctl -o short-monotonic`: `[  966.503025] host kernel: NVRM: ...`, seconds since boot."""

from __future__ import annotations

import re

from nodeprep.diagnose.reader import Parsed
from nodeprep.diagnose.readers._log import log_reader
from nodeprep.diagnose.readers._syslog import message


def _build(match: re.Match[str]) -> Parsed:
    return message(match, None, uptime_s=float(match["uptime"]))


# "pcieport 0000:00:02.0: ..." of dmesg has the same shape, so only names that kernels and init systems
# surely have in front are taken: the kernel's own, and those with a process number.
READER = log_reader(
    "journal_monotonic",
    r"\[ *(?P<uptime>\d{1,12}\.\d{6})\] (?P<host>[\w.-]{1,255}) "
    r"(?:(?P<tag>kernel)(?P<pid>)|[^\s:\[\]]{1,128}\[\d{1,10}\]): ?(?P<text>.*)",
    _build,
    bonus=5,
)
