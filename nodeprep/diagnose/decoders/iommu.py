"""Accesses that the IOMMU refused."""

from __future__ import annotations

import re

from nodeprep.diagnose.decoder import Decoder
from nodeprep.diagnose.decoders._each import each
from nodeprep.diagnose.device import ADDRESS, address, from_requester_id
from nodeprep.diagnose.event import Event
from nodeprep.diagnose.line import Line

_DMAR = re.compile(
    # Source: Linux 5.14, drivers/iommu/intel/dmar.c: it wrote bus and slot as 0x00:0x02.0.
    rf"DMAR: \[(?P<op>[\w ]+)\](?:.{{0,80}}?Request)? (?:device|device \[) ?\[?"
    rf"(?P<device>{ADDRESS}|0x[0-9a-fA-F]{{2}}:0x[0-9a-fA-F]{{2}}\.[0-7])\]?.{{0,80}}?"
    r"fault addr (?P<address>(?:0x)?[0-9a-fA-F]+)(?:.*?fault reason (?P<reason>.*))?"
)
_AMD = re.compile(
    rf"(?:(?P<driver>[\w-]+) (?P<first>{ADDRESS}): )?AMD-Vi: Event logged \[(?P<event>\w+)(?: "
    rf"device=(?P<device>{ADDRESS}))?"
    r".*?(?:address=(?P<address>0x[0-9a-fA-F]+))?"
)
# Source: Linux, drivers/iommu/amd/iommu.c and intel/dmar.c: a device that does not confirm an invalidation.
_SILENT = re.compile(
    rf"AMD-Vi: Event logged \[IOTLB_INV_TIMEOUT device=(?P<device>{ADDRESS})|"
    rf"DMAR: (?:VT-d detected )?Invalidation Time-?out Error.*?(?:SID (?P<sid>[0-9a-fA-F]{{1,4}}))?$"
)
# Source: Linux, drivers/iommu/arm/arm-smmu-v3: Grace has no other IOMMU.
_STALLED = re.compile(
    r"arm-smmu-v3 \S+: (?:CMDQ error .*ATC invalidate timeout|CMD_SYNC timeout)|"
    r"AMD-Vi: Completion-Wait loop timed out|DMAR: .*\bQI timed out|qi_submit_sync.*timed out"
)
# Source: QEMU, hw/vfio/container.c; Linux, drivers/iommu/intel/iommu.c.
_NOT_VIABLE = re.compile(
    rf"vfio(?: error:?)?:? (?P<device>{ADDRESS}): group (?P<group>\d{{1,5}}) is not viable"
)
_RMRR = re.compile(
    rf"(?P<device>{ADDRESS}): .{{0,20}}ineligible for IOMMU domain attach due to platform RMRR"
)
_SUPPRESSED = re.compile(r"\bdmar_fault: (?P<count>\d{1,18}) callbacks suppressed")
_REMAPPING = re.compile(r"DMAR: .*\bfault status reg\b")


def _parse(line: Line) -> Event | None:  # noqa: PLR0911  # one return a message
    text = line.text
    if match := _SILENT.search(text):
        return Event(kind="iommu.silent_device", lines=(line,), device=_silent(match))
    if _STALLED.search(text):
        return Event(kind="iommu.stalled", lines=(line,))
    if match := _NOT_VIABLE.search(text):
        group = {"group": int(match["group"])}
        return Event(kind="vfio.group_not_viable", lines=(line,), device=address(match["device"]), data=group)
    if match := _RMRR.search(text):
        return Event(kind="vfio.reserved_memory", lines=(line,), device=address(match["device"]))
    if match := _DMAR.search(text):
        data = {"address": match["address"], "operation": match["op"]}
        return Event(
            kind="iommu.fault", lines=(line,), device=address(match["device"].replace("0x", "")), data=data
        )
    if _REMAPPING.search(text):
        return None
    if match := _SUPPRESSED.search(text):
        data = {"suppressed": int(match["count"])}
        return Event(kind="iommu.suppressed", lines=(line,), data=data)
    if match := _AMD.search(text):
        device = address(match["device"] or match["first"] or "")
        return Event(kind="iommu.fault", lines=(line,), device=device, data={"event": match["event"]})
    return None


def _silent(match: re.Match[str]) -> str:
    if match["sid"]:
        return from_requester_id(int(match["sid"], 16))
    return address(match["device"] or "")


_WORDS = (
    "DMAR: [",
    "dmar_fault: ",
    "AMD-Vi: Event",
    "Completion-Wait loop",
    "nvalidation Time",
    "QI timed out",
    "ATC invalidate timeout",
    "CMD_SYNC timeout",
    "is not viable",
    "RMRR",
)
DECODER = Decoder(
    id="iommu",
    needles=tuple(word.encode() for word in _WORDS),
    decode=each(_WORDS, _parse),
)
