"""Lines in which a log itself says that it lost something, or that a boot begins."""

from __future__ import annotations

import re
from typing import NamedTuple


class Loss(NamedTuple):
    """What such a line means."""

    gap: str = ""
    note: str = ""
    new_boot: bool = False


_NUMBER = r"(?P<count>\d+)"
# Sources: systemd src/journal/journald-kmsg.c and journald-rate-limit.c, src/shared/logs-show.c;
# rsyslog imuxsock and imjournal; kernel/printk/printk.c, lib/ratelimit.c.
_GAPS = (
    (re.compile(rf"Missed {_NUMBER} kernel messages"), "the journal missed {count} kernel messages"),
    (re.compile(rf"\*\* {_NUMBER} printk messages dropped \*\*"), "the kernel dropped {count} messages"),
    (re.compile(rf"imuxsock.*lost {_NUMBER} messages"), "rsyslog lost {count} messages"),
    (re.compile(rf"imjournal: {_NUMBER} messages lost"), "rsyslog lost {count} messages"),
    (re.compile(r"^-- No entries --"), "the journal had no entries for what was asked"),
    (
        re.compile(rf"(?:aer_ratelimit|aer_\w+|dpc_\w+): {_NUMBER} callbacks suppressed"),
        "the kernel left out {count} PCIe error messages",
    ),
    (
        re.compile(r"journal file .{1,200}? is truncated, ignoring"),
        "a journal file was truncated and ignored by journalctl",
    ),
    (re.compile(r"Journal file .{1,200}? corrupted"), "a journal file was corrupted"),
)
_NOTES = (
    (
        re.compile(rf"callbacks suppressed|output lines suppressed|Suppressed {_NUMBER} messages"),
        "repeated messages were left out by a rate limit",
    ),
)
_BOOT = re.compile(r"^-- (?:Reboot|Boot [0-9a-f]{32}) ?--")

NEEDLES = (
    b"Linux version ",
    b"Missed ",
    b"printk messages dropped",
    b"messages lost",
    b"imuxsock",
    b"-- Boot ",
    b"-- Reboot",
    b"-- No entries",
    b"suppressed",
    b"is truncated, ignoring",
    b" corrupted",
)


def found(raw: str) -> Loss | None:
    """What a line says about its log; None for all that speak of something else."""
    if raw.startswith("-- ") and _BOOT.match(raw):
        return Loss(new_boot=True)
    if not any(word in raw for word in _WORDS):
        return None
    for pattern, words in _GAPS:
        match = pattern.search(raw)
        if match:
            return Loss(gap=words.format(**match.groupdict()))
    for pattern, words in _NOTES:
        if pattern.search(raw):
            return Loss(note=words)
    return None


_WORDS = ("Missed ", "dropped", "lost", "-- No entries", "suppressed", "Suppressed", "truncated", "corrupted")
