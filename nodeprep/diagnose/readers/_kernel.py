"""What the kernel puts before its own messages, whatever log carries them."""

from __future__ import annotations

import re

UPTIME = r"\[ *(?P<uptime>\d{1,12}\.\d{4,6})\]"
# CONFIG_PRINTK_CALLER: the thread or the CPU, in brackets of its own.
CALLER = r"(?: ?\[ *[TC]\d+\])?"
# `dmesg -r` writes a number, `-x` words: "kern  :err   : ".
PRIORITY = r"(?:<(?P<priority>\d{1,3})>|[a-z]{2,8} {0,4}:[a-z]{2,7} {0,4}: )?"

_INNER = re.compile(rf"{UPTIME}{CALLER} ?(?P<text>.*)", re.DOTALL)
BANNER = re.compile(r"Linux version \d")


def inner(text: str) -> tuple[str, float | None]:
    """A kernel message that syslog wrapped, without the uptime rsyslog may have left in it."""
    match = _INNER.match(text)
    if match is None:
        return text, None
    return match["text"], float(match["uptime"])
