"""`nvidia-smi -q`: names and values, indented below each GPU's address; events as in _smi.py.

A part of it that somebody cut out (grep -A) is read as well, without an address where it has none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime

from nodeprep.diagnose.line import Line
from nodeprep.diagnose.reader import Item, RawLine, Reader, Remark
from nodeprep.diagnose.readers._document import lines_of
from nodeprep.diagnose.readers._smi import Gpu, path_name, pci_address
from nodeprep.diagnose.readers._time import CLOCK, MONTH, NO_ZONE_NOTE, WEEKDAY, month_day

_OPENS = re.compile(rb"\s{0,4}={6,}\s?NVSMI LOG\s?={6,}")
_GPU = re.compile(r"GPU (?P<address>[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7])\s*(?::.*)?$")
_TIMESTAMP = re.compile(
    rf"Timestamp\s{{1,60}}: {WEEKDAY} "
    rf"(?P<month>{MONTH}) {{1,2}}(?P<day>\d{{1,2}}) (?P<clock>{CLOCK}) (?P<year>\d{{4}})"
)
_MAX_DEPTH = 8
_PART = re.compile(
    rb"\s{0,12}(?:(?:Remapped Rows|Retired Pages|ECC Errors|Clocks (?:Event|Throttle) Reasons|"
    rb"PCIe Generation|Link Width|(?:GPU )?Power Readings)\s*$|(?:GPU Recovery Action|Performance State|"
    rb"Remapping Failure Occurred|SRAM Threshold Exceeded)\s{0,60}: )"
)
_PAIR = re.compile(rb"\s{0,24}[A-Z][\w ./()-]{1,60}\s:(?: |$)")
# Prose has a colon here and there as well.
_MOSTLY = 0.6


def _sniff(lines: Sequence[bytes]) -> int:
    if any(_OPENS.match(line) for line in lines[:6]):
        return 95
    written = [line for line in lines if line.strip()]
    if not any(_PART.match(line) for line in written):
        return 0
    fields = sum(1 for line in written if _PAIR.match(line) or _PART.match(line))
    return 60 if fields >= _MOSTLY * len(written) else 0


def _read(source: str, lines: Iterator[RawLine]) -> Iterator[Item]:  # noqa: PLR0912  # one branch a line
    gpu: Gpu | None = None
    path: list[tuple[int, str]] = []
    time: datetime | None = None
    driver = ""
    for plain in lines_of(source, lines):
        line: Line = replace(plain, time=time)
        text = line.text
        if stamp := _TIMESTAMP.match(text):
            time = month_day(stamp["month"], stamp["day"], stamp["clock"], "", stamp["year"])
            yield Remark(note=NO_ZONE_NOTE)
            line = replace(line, time=time)
        yield line
        if header := _GPU.match(text):
            if gpu is not None:
                yield from gpu.events()
            gpu = Gpu(pci_address(header["address"]), line)
            if driver:
                gpu.take("driver_version", driver, line)
            path = []
            continue
        name, separator, value = text.partition(" : ")
        if not separator and text.rstrip().endswith(" :"):
            name = text.rstrip()[:-2]
        depth = len(text) - len(text.lstrip())
        while path and path[-1][0] >= depth:
            path.pop()
        if separator:
            whole = "/".join([*(part for _, part in path), path_name(name)])
            if gpu is not None:
                gpu.take(whole, value, line)
            elif whole == "driver_version":
                driver = value.strip()
            else:
                gpu = _unnamed(whole, value, line)
        elif len(path) < _MAX_DEPTH and len(text) < 200:
            path.append((depth, path_name(name)))
    if gpu is not None:
        yield from gpu.events()


def _unnamed(path: str, value: str, line: Line) -> Gpu | None:
    """A GPU whose address was cut off; None for what stands before the first GPU of a whole page."""
    gpu = Gpu("", line)
    gpu.take(path, value, line)
    return gpu if gpu.values or gpu.uncorrected or gpu.slowdowns or gpu.needs_reset else None


READER = Reader(id="nvidia_smi_q", sniff=_sniff, read=_read, whole=True, opens=_OPENS)
