"""Accesses that the IOMMU refused."""

from __future__ import annotations

import re

from nodeprep.diagnose.decoder import Decoder
from nodeprep.diagnose.decoders._each import each
from nodeprep.diagnose.device import ADDRESS, address
from nodeprep.diagnose.event import Event
from nodeprep.diagnose.line import Line

_DMAR = re.compile(
    rf"DMAR: \[(?P<op>[\w ]+)\](?:.*?Request)? (?:device|device \[) ?\[?(?P<device>{ADDRESS})\]?.*?"
    r"fault addr (?P<address>(?:0x)?[0-9a-fA-F]+)(?:.*?fault reason (?P<reason>.*))?"
)
_AMD = re.compile(
    rf"(?:(?P<driver>[\w-]+) (?P<first>{ADDRESS}): )?AMD-Vi: Event logged \[(?P<event>\w+)(?: "
    rf"device=(?P<device>{ADDRESS}))?"
    r".*?(?:address=(?P<address>0x[0-9a-fA-F]+))?"
)
_SUPPRESSED = re.compile(r"\bdmar_fault: (?P<count>\d{1,18}) callbacks suppressed")
_REMAPPING = re.compile(r"DMAR: .*\bfault status reg\b")


def _parse(line: Line) -> Event | None:
    text = line.text
    if match := _DMAR.search(text):
        data = {"address": match["address"], "operation": match["op"]}
        return Event(kind="iommu.fault", lines=(line,), device=address(match["device"]), data=data)
    if _REMAPPING.search(text):
        return None
    if match := _SUPPRESSED.search(text):
        data = {"suppressed": int(match["count"])}
        return Event(kind="iommu.suppressed", lines=(line,), data=data)
    if match := _AMD.search(text):
        device = address(match["device"] or match["first"] or "")
        return Event(kind="iommu.fault", lines=(line,), device=device, data={"event": match["event"]})
    return None


DECODER = Decoder(
    id="iommu",
    needles=(b"DMAR: [", b"dmar_fault: ", b"AMD-Vi: Event"),
    decode=each(("DMAR: [", "dmar_fault: ", "AMD-Vi: Event"), _parse),
)
