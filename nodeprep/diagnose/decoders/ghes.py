"""Errors that firmware saw first (APEI GHES), and those of the boot before (BERT)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from nodeprep.diagnose.decoder import Decoder
from nodeprep.diagnose.decoders._each import bounded
from nodeprep.diagnose.device import ADDRESS, address
from nodeprep.diagnose.event import Event
from nodeprep.diagnose.line import Line

_LINE = re.compile(r"(?:\{(?P<group>\d{1,18})\})?\[Hardware Error\]:\s*(?P<text>.*)")
_BERT = re.compile(r"BERT: Error records from previous boot")
_SOURCE = re.compile(r"Hardware error from APEI")
_FIELDS = {
    "severity": re.compile(r"^event severity: (\w+)"),
    "section": re.compile(r"section_type: (.+)"),
    "device": re.compile(rf"device_id: ({ADDRESS})"),
    "vendor": re.compile(r"vendor_id: 0x([0-9a-fA-F]{4})"),
    "device_type": re.compile(r"vendor_id: 0x[0-9a-fA-F]{4}, device_id: 0x([0-9a-fA-F]{4})"),
    "port_type": re.compile(r"port_type: \d{1,18}, (.+)"),
    "aer_uncor_status": re.compile(r"aer_uncor_status: 0x([0-9a-fA-F]+)"),
    "dimm": re.compile(r"(?:DIMM location|DIMM|module_handle): *(.+)"),
    "error_type": re.compile(r"error_type: \d{1,18}, (.+)"),
}
_KINDS = (("PCIe", "pcie"), ("memory", "memory"), ("processor", "processor"), ("Firmware", "firmware"))


def decode(lines: Iterable[Line]) -> Iterator[Event]:
    """Events `ghes.SECTION` and `bert.SECTION`; a section is pcie, memory, processor, firmware or other."""
    groups: dict[str, list[Line]] = {}
    bert: Line | None = None
    for line in bounded(lines):
        if _BERT.search(line.text):
            bert = line
            continue
        match = _LINE.search(line.text) if "[Hardware Error]" in line.text else None
        # Lines of the machine check decoder carry the same mark; mce.py reads those.
        if not match or line.text.lstrip().startswith(("mce:", "EDAC")):
            continue
        group = match["group"] or ("bert" if bert else "")
        if not group:
            continue
        if _SOURCE.search(match["text"]) and group in groups:
            yield from _events(groups.pop(group), "ghes")
        groups.setdefault(group, [bert] if group == "bert" and bert else []).append(line)
    for group, found in groups.items():
        yield from _events(found, "bert" if group == "bert" else "ghes")


def _events(lines: list[Line], origin: str) -> Iterator[Event]:
    data: dict[str, Any] = {}
    for line in lines:
        match = _LINE.search(line.text)
        text = match["text"].strip() if match else ""
        for name, pattern in _FIELDS.items():
            if name not in data and (found := pattern.search(text)):
                data[name] = found[1].strip()
    section = str(data.get("section", ""))
    kind = next((kind for word, kind in _KINDS if word in section), "other")
    device = address(str(data.pop("device", "")))
    yield Event(kind=f"{origin}.{kind}", lines=tuple(lines), device=device, data=data)


DECODER = Decoder(id="ghes", needles=(b"[Hardware Error]", b"BERT: Error records"), decode=decode)
