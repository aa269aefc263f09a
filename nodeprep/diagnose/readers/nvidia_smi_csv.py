"""`nvidia-smi --query-gpu=... --format=csv`, and --query-remapped-rows: a heading, then a row a GPU.

Rows without a heading (`noheader`) cannot be told from other tables and are plain lines. Events as in
_smi.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from nodeprep.diagnose.reader import Item, RawLine, Reader
from nodeprep.diagnose.readers._document import lines_of
from nodeprep.diagnose.readers._smi import Gpu, pci_address

_OPENS = re.compile(
    rb"(?=[^\n]*\b(?:pci\.bus_id|gpu_bus_id|gpu_uuid|uuid|index|gpu_name|name|timestamp)\b)"
    rb"(?=[^\n]*(?:\b(?:ecc|remapped_rows|power|pcie|clocks|temperature|persistence_mode|retired_pages|memory|"
    rb"utilization|pstate|driver_version|mig|fabric)\b))"
    rb"[a-z_]+(?:\.[A-Za-z_.]+)?(?: \[[\w%/]+\])?, ?[\w.,\[\] /%]+$"
)
_UNIT = re.compile(r"\s*\[[^\]]*\]$")
_ADDRESS_NAMES = ("pci.bus_id", "gpu_bus_id")
_MAX_COLUMNS = 400


def _sniff(lines: Sequence[bytes]) -> int:
    return 92 if any(_OPENS.match(line.strip()) for line in lines[:3]) else 0


def _read(source: str, lines: Iterator[RawLine]) -> Iterator[Item]:
    names: list[str] = []
    for line in lines_of(source, lines):
        yield line
        cells = [cell.strip() for cell in line.text.split(",", _MAX_COLUMNS)]
        if _OPENS.match(line.text.strip().encode("utf-8", "replace")):
            names = [_UNIT.sub("", cell) for cell in cells]
            continue
        if not names or len(cells) != len(names):
            continue
        row = dict(zip(names, cells, strict=True))
        device = next((pci_address(row[name]) for name in _ADDRESS_NAMES if name in row), "")
        gpu = Gpu(device, line)
        for name, value in row.items():
            gpu.take(name, value, line)
        yield from gpu.events()


READER = Reader(id="nvidia_smi_csv", sniff=_sniff, read=_read, whole=True)
