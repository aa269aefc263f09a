"""`nvidia-smi -q -x`: the same as XML; read line by line, so that one cut off still tells what it holds.

Events as in _smi.py.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime

from nodeprep.diagnose.reader import Item, RawLine, Reader, Remark
from nodeprep.diagnose.readers._document import lines_of
from nodeprep.diagnose.readers._smi import Gpu, pci_address
from nodeprep.diagnose.readers._time import CLOCK, MONTH, NO_ZONE_NOTE, WEEKDAY, month_day

_OPENS = re.compile(rb"\s{0,4}(?:<nvidia_smi_log>|<!DOCTYPE nvidia_smi_log)")
_TAG = re.compile(
    r"<(?P<close>/)?(?P<name>[A-Za-z_][\w.-]{0,80})(?P<attributes>(?: [^<>]{0,400})?)>(?P<text>[^<]{0,400})"
)
_ID = re.compile(r"id=\"(?P<id>[^\"]{1,40})\"")
_STAMP = re.compile(
    rf"{WEEKDAY} (?P<month>{MONTH}) {{1,2}}(?P<day>\d{{1,2}}) (?P<clock>{CLOCK}) (?P<year>\d{{4}})"
)
_MAX_DEPTH = 12


def _sniff(lines: Sequence[bytes]) -> int:
    return 96 if any(_OPENS.match(line) for line in lines[:6]) else 0


def _read(source: str, lines: Iterator[RawLine]) -> Iterator[Item]:  # noqa: PLR0912  # one branch a tag
    gpu: Gpu | None = None
    path: list[str] = []
    time: datetime | None = None
    driver = ""
    ended = False
    for plain in lines_of(source, lines):
        line = replace(plain, time=time)
        yield line
        for tag in _TAG.finditer(line.text):
            name = tag["name"]
            if tag["close"]:
                ended = ended or name == "nvidia_smi_log"
                if name in path:
                    del path[len(path) - 1 - path[::-1].index(name) :]
                if name == "gpu" and gpu is not None:
                    yield from gpu.events()
                    gpu = None
                continue
            if len(path) < _MAX_DEPTH:
                path.append(name)
            identity = _ID.search(tag["attributes"]) if name == "gpu" else None
            value = html.unescape(tag["text"]).strip()
            if identity is not None:
                gpu = Gpu(pci_address(identity["id"]), line)
                if driver:
                    gpu.take("driver_version", driver, line)
            elif name == "timestamp" and (stamp := _STAMP.match(value)):
                time = month_day(stamp["month"], stamp["day"], stamp["clock"], "", stamp["year"])
                yield Remark(note=NO_ZONE_NOTE)
            elif name == "driver_version" and gpu is None:
                driver = value
            elif value and gpu is not None:
                gpu.take("/".join(path), value, line)
    if gpu is not None:
        yield from gpu.events()
    if not ended:
        yield Remark(gap="its XML is cut off: </nvidia_smi_log> is missing")


READER = Reader(id="nvidia_smi_xml", sniff=_sniff, read=_read, whole=True, opens=_OPENS)
