r"""Records of /dev/kmsg: `3,1234,98765432,-;NVRM: ...`, then lines ` KEY=value` about the same message.

Priority with facility, sequence number, microseconds since boot, flags. A jump in the sequence is a loss.
The kernel.log in an archive of nodeprep's evidence has sequence, microseconds, priority.
Source: Documentation/ABI/testing/dev-kmsg.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from nodeprep.diagnose.reader import Item, Parsed, RawLine, Reader, Remark
from nodeprep.diagnose.readers import _losses
from nodeprep.diagnose.readers._log import read_by, sniff_by

_HEADER = (
    rb"(?:(?P<priority>\d{1,4}),(?P<sequence>\d{1,19}),(?P<usec>\d{1,18}),[-c+](?:,[^;]{0,200})?|"
    rb"(?P<sequence2>\d{1,19}),(?P<usec2>\d{1,18}),(?P<priority2>[0-7]));"
)
_OPENS = re.compile(_HEADER)
_WHOLE = re.compile(_HEADER.decode() + r"(?P<text>.*)", re.DOTALL)
_ESCAPE = re.compile(r"\\x([0-9a-f]{2})")
_FACILITY_SHIFT = 3


def _parse(text: str) -> Parsed | None:
    match = _WHOLE.match(text)
    if match is None:
        return None
    priority = int(match["priority"] or match["priority2"])
    return Parsed(
        text=_ESCAPE.sub(lambda found: chr(int(found[1], 16)), match["text"]),
        uptime_s=int(match["usec"] or match["usec2"]) / 1e6,
        # Facility 0 is the kernel; others are programs that write to /dev/kmsg.
        kernel=priority >> _FACILITY_SHIFT == 0,
        priority=priority & 7,
    )


def _read(source: str, lines: Iterator[RawLine]) -> Iterator[Item]:
    lost = _Lost()
    for item in read_by(_parse)(source, lost.watched(lines)):
        yield item
        yield from lost.remarks()
    yield from lost.remarks()


class _Lost:
    """Counts what is missing between sequence numbers."""

    def __init__(self) -> None:
        self._last: int | None = None
        self._gaps: list[str] = []

    def watched(self, lines: Iterator[RawLine]) -> Iterator[RawLine]:
        for raw in lines:
            if raw.data[:1] == b" ":
                # SUBSYSTEM= and DEVICE= of the record before.
                continue
            match = _OPENS.match(raw.data)
            if match is not None:
                self._see(int(match["sequence"] or match["sequence2"]))
            yield raw

    def _see(self, sequence: int) -> None:
        if self._last is not None and sequence > self._last + 1:
            count = sequence - self._last - 1
            self._gaps.append(f"{count} records are missing before sequence {sequence}")
        self._last = sequence

    def remarks(self) -> Iterator[Remark]:
        while self._gaps:
            yield Remark(gap=self._gaps.pop(0))


READER = Reader(
    id="kmsg",
    sniff=sniff_by(_OPENS),
    read=_read,
    wants=_losses.NEEDLES,
    # Only consecutive records tell whether one is missing.
    whole=True,
    opens=_OPENS,
    parse=_parse,
)
