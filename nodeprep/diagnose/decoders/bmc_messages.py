"""The event log in the words of a vendor's controller (iDRAC, iLO, XCC), where ipmitool did not print it."""

from __future__ import annotations

import re

from nodeprep.diagnose.decoder import Decoder
from nodeprep.diagnose.decoders._each import each
from nodeprep.diagnose.event import Event
from nodeprep.diagnose.line import Line

# Source: Dell, Event and Error Message Reference: CPU, FAN, MEM, PCI, PSU, RDU, TMP and UEFI0067. Numbers of
# bus and device are decimal there.
_DELL_PLACE = (
    r"(?:bus (?P<bus>\d{1,3}) device (?P<slot>\d{1,2}) function (?P<function>[0-7])|slot (?P<place>\w{1,8}))"
)
_DELL_LINK = r"Bus: ?(?P<bus>\d{1,3}) Dev: ?(?P<slot>\d{1,2}) F(?:un)?: ?(?P<function>[0-7])"
_DETECTED = rf"error (?:was|has been) detected on a component at {_DELL_PLACE}"
_MODULE = r"(?P<place>(?:DIMM|[A-Z]\d)[\w-]{0,16})"
# Source: HPE, Integrated Management Log messages of ProLiant Gen10. Its numbers are hexadecimal.
_HPE_PLACE = (
    r"(?:.{0,80}?Segment (?P<segment>0x[0-9a-f]{1,4}), )?(?:.{0,80}?Bus (?P<hex_bus>0x[0-9a-f]{1,2}), "
    r"Device (?P<hex_slot>0x[0-9a-f]{1,2}), Function (?P<hex_function>0x[0-7]))?"
)
# Source: Lenovo XCC, IBM IMM: events 806f0413, 806f0513, 806f0813 and 806f0a13.
_LENOVO = r"(?:Uncorrectable|PCI PERR|PCI SERR|Fatal)\b.{0,50} has occurred on (?:bus|system|slot)\b"
_KINDS = tuple(
    (kind, re.compile("|".join(patterns), re.IGNORECASE))
    for kind, *patterns in (
        ("sel.pcie_fatal", rf"\b(?:fatal|bus uncorrectable) (?:IO )?{_DETECTED}"),
        ("sel.pcie_error", rf"\b(?:bus correctable|non-fatal) {_DETECTED}"),
        ("sel.pcie_untrained", rf"PCIe link training failure is observed in {_DELL_LINK}"),
        ("sel.pcie_fatal", rf"\bUncorrectable PCI Express Error(?: Detected)?{_HPE_PLACE}", _LENOVO),
        ("sel.power_supply", r"power supply (?P<place>\w{1,8}) (?:(?:is|was) lost|(?:has )?failed\b)"),
        ("sel.power_redundancy", r"power supply redundancy (?:is|was|has been) (?:lost|degraded)"),
        (
            "sel.memory_uncorrected",
            rf"(?:multi-bit|(?<!\w)uncorrectable) memory errors? .{{0,80}}?\b{_MODULE}",
        ),
        ("sel.memory_corrected", rf"(?<!un)correctable memory error .{{0,80}}?\b{_MODULE}"),
        ("sel.temperature", r"temperature is (?:greater than|above) the upper critical threshold"),
        (
            "sel.processor",
            r"CPU (?P<place>\d{1,2}) has an internal error \(IERR\)",
            r"Uncorrectable Error has (?:occurred on CPUs|been detected on processor \d)",
        ),
        ("sel.fan", r"fan (?P<place>[\w ]{1,12}?) RPM is (?:less than|below) the lower critical threshold"),
    )
)  # fmt: skip


def _parse(line: Line) -> Event | None:
    for kind, pattern in _KINDS:
        if match := pattern.search(line.text):
            found = match.groupdict()
            data = {"place": found["place"].upper()} if found.get("place") else {}
            return Event(kind=kind, lines=(line,), device=_device(found), data=data)
    return None


def _device(found: dict[str, str | None]) -> str:
    if bus_text := found.get("bus"):
        domain, bus, slot = 0, int(bus_text), int(found["slot"] or "0")
        function = found["function"]
    elif bus_text := found.get("hex_bus"):
        domain, bus = int(found.get("segment") or "0", 16), int(bus_text, 16)
        slot, function = int(found["hex_slot"] or "0", 16), str(int(found["hex_function"] or "0", 16))
    else:
        return ""
    return f"{domain:04x}:{bus:02x}:{slot:02x}.{function}" if bus <= 0xFF and slot <= 0x1F else ""


_WORDS = ("detected on a component", "link training failure", "PCI Express Error", "has occurred on ",
          "ower suppl", "emory error", "critical threshold", "(IERR)",
          "ncorrectable error has been detected")  # fmt: skip
DECODER = Decoder(
    id="bmc_messages",
    needles=tuple(word.encode() for word in _WORDS),
    decode=each(_WORDS, _parse),
)
