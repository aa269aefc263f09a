"""What follows the date in syslog: host, program, message."""

from __future__ import annotations

import re
from datetime import datetime

from nodeprep.diagnose.reader import Parsed
from nodeprep.diagnose.readers._kernel import inner

# Programs that write a level where syslog has the host are no syslog.
LEVEL = r"(?:TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|ERR|FATAL|CRITICAL|CRIT)"
# People take the host's name out before they show a log; the kernel is known without it.
AFTER_DATE = (
    rf"(?!{LEVEL}\b)"
    r"(?:(?P<host>[^\s:\[\]{}\"]{1,255}) | ?(?=kernel: ))(?P<tag>[^\s:\[\]{}\"]{1,128}(?: \(\S{1,64}\))?)"
    r"(?:\[(?P<pid>[^\]\s]{0,20})\])?: ?(?P<text>.*)"
)
KERNEL_TAGS = frozenset({"kernel", "vmunix"})
_TAB = "#011"


def message(
    match: re.Match[str], time: datetime | None, *, uptime_s: float | None = None, note: str = ""
) -> Parsed:
    """The message of a line that matched AFTER_DATE."""
    kernel = match["tag"] in KERNEL_TAGS
    text = match["text"]
    if _TAB in text:
        # rsyslog writes control characters as octal numbers.
        text = text.replace(_TAB, "\t")
    if kernel:
        text, inside_s = inner(text)
        uptime_s = inside_s if inside_s is not None else uptime_s
    return Parsed(text=text, time=time, uptime_s=uptime_s, host=match["host"] or "", kernel=kernel, note=note)
