"""The table that `nvidia-smi` prints without arguments; events as in _smi.py.

Two rows a GPU: name, persistence, address and ECC count; then temperature, state, power and load.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from nodeprep.diagnose.line import Line
from nodeprep.diagnose.reader import Item, RawLine, Reader, Remark
from nodeprep.diagnose.readers._document import lines_of
from nodeprep.diagnose.readers._smi import Gpu, pci_address
from nodeprep.diagnose.readers._time import CLOCK, MONTH, NO_ZONE_NOTE, WEEKDAY, month_day

_OPENS = re.compile(rb"\s{0,4}\| NVIDIA-SMI \d")
_DRIVER = re.compile(r"Driver Version: (?P<version>[\d.]+)")
_STAMP = re.compile(
    rf"\s*{WEEKDAY} (?P<month>{MONTH}) {{1,2}}(?P<day>\d{{1,2}}) (?P<clock>{CLOCK}) (?P<year>\d{{4}})\s*$"
)
_FIRST = re.compile(
    r"\|\s+(?P<index>\d{1,3}|ERR!)\s+(?P<name>\S.{0,60}?)\s+(?P<persistence>On|Off|ERR!|N/A)\s*\|\s*"
    r"(?P<address>[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7])\s.{0,20}?\|\s*(?P<ecc>\S.{0,30}?)\s*\|"
)
_SECOND = re.compile(
    r"\|\s*(?P<fan>\S{1,8})\s+(?P<temperature>\S{1,8})\s+(?P<state>P\d{1,2}|ERR!|N/A|Unknown)\s+"
    r"(?P<draw>\S{1,10})\s*/\s*(?P<limit>\S{1,10})\s*\|"
)


def _sniff(lines: Sequence[bytes]) -> int:
    return 94 if any(_OPENS.match(line) for line in lines[:6]) else 0


def _read(source: str, lines: Iterator[RawLine]) -> Iterator[Item]:
    gpu: Gpu | None = None
    driver = ""
    for line in lines_of(source, lines):
        yield line
        if stamp := _STAMP.match(line.text):
            time = month_day(stamp["month"], stamp["day"], stamp["clock"], "", stamp["year"])
            if time is not None:
                yield Remark(note=NO_ZONE_NOTE)
        elif version := _DRIVER.search(line.text):
            driver = version["version"]
        elif first := _FIRST.match(line.text):
            if gpu is not None:
                yield from gpu.events()
            gpu = _gpu(first, line, driver)
        elif gpu is not None and (second := _SECOND.match(line.text)):
            gpu.take("temperature.gpu", second["temperature"], line)
            gpu.take("pstate", second["state"], line)
            gpu.take("power.draw", second["draw"], line)
            gpu.take("power.limit", second["limit"], line)
            yield from gpu.events()
            gpu = None
    if gpu is not None:
        yield from gpu.events()


def _gpu(row: re.Match[str], line: Line, driver: str) -> Gpu:
    gpu = Gpu(pci_address(row["address"]), line)
    for name, value in (
        ("index", row["index"]),
        ("name", row["name"]),
        ("persistence_mode", row["persistence"]),
        ("ecc.errors.uncorrected.volatile.total", row["ecc"]),
        ("driver_version", driver),
    ):
        gpu.take(name, value, line)
    return gpu


READER = Reader(id="nvidia_smi_table", sniff=_sniff, read=_read, whole=True, opens=_OPENS)
