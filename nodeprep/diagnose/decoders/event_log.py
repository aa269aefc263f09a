"""The BMC's event log, as ipmitool prints it: what hardware says of power, heat and buses."""

from __future__ import annotations

import re

from nodeprep.diagnose.decoder import Decoder
from nodeprep.diagnose.decoders._each import each
from nodeprep.diagnose.device import address
from nodeprep.diagnose.event import Event
from nodeprep.diagnose.line import Line

_KINDS = (
    ("sel.pcie_fatal", re.compile(r"Critical Interrupt.*(?:Bus Fatal Error|PCI SERR|Fatal NMI|Bus "
        r"Uncorrectable)", re.IGNORECASE)),
    ("sel.pcie_error", re.compile(r"Critical Interrupt.*(?:PCI PERR|Bus Correctable|Bus Degraded|"
        r"PCI)", re.IGNORECASE)),
    ("sel.power_supply", re.compile(r"Power Supply.*(?:Failure detected|Predictive failure|AC lost|"
        r"input lost|Failure)", re.IGNORECASE)),
    ("sel.power_redundancy", re.compile(r"(?:Power (?:Unit|Supply)|PS Redundancy)"
        r".*(?:Redundancy (?:Lost|Degraded)|Non-Redundant|Fully Redundant)", re.IGNORECASE)),
    ("sel.memory_uncorrected", re.compile(r"Memory.*Uncorrectable (?:ECC|memory error)", re.IGNORECASE)),
    ("sel.memory_corrected", re.compile(r"Memory.*(?:Correctable ECC|logging limit reached)", re.IGNORECASE)),
    ("sel.temperature", re.compile(r"Temperature.*(?:Upper (?:Critical|Non-recoverable)|"
        r"Over.?temperature)", re.IGNORECASE)),
    ("sel.processor", re.compile(r"Processor.*(?:IERR|Uncorrectable machine check|CATERR|Thermal "
        r"Trip)", re.IGNORECASE)),
    ("sel.fan", re.compile(r"Fan.*(?:Lower (?:Critical|Non-recoverable)|Redundancy Lost|"
        r"Fully Redundant|Failure)", re.IGNORECASE)),
)  # fmt: skip
_CLEARED = re.compile(r"\bDeasserted\b|\bDeassertion\b", re.IGNORECASE)
_WHOLE = re.compile(r"\b(?:Fully Redundant|Redundancy Regained|Transition to OK)\b", re.IGNORECASE)
# A state that was good and is no longer: the event is the loss and not its end.
_LEFT = re.compile(r"\bFully Redundant\b.*\bDeassert", re.IGNORECASE)
# Source: ipmitool, decoded event data of Quanta servers.
_BUS = re.compile(r"\bB(?P<bus>[0-9a-fA-F]{2})/D(?P<slot>[01][0-9a-fA-F])/F0?(?P<function>[0-7])\b")
_MODULE = re.compile(r"(?P<place>[\w-]{0,16}DIMM[\w-]{0,16}(?:\(CPU\d{1,2}\))?)(?![\w ]*ECC)")


def _parse(line: Line) -> Event | None:
    if "|" not in line.text:
        return None
    sensor = line.text.split("|", 1)[0].strip()
    over = _CLEARED.search(line.text) or _WHOLE.search(line.text)
    if over and not _LEFT.search(line.text):
        return Event(kind="sel.cleared", lines=(line,), data={"sensor": sensor})
    module = _MODULE.search(line.text)
    data = {"sensor": sensor, **({"place": module["place"]} if module else {})}
    kind = next((kind for kind, pattern in _KINDS if pattern.search(line.text)), "")
    if not kind:
        return None
    place = _BUS.search(line.text) if kind.startswith("sel.pcie") else None
    device = address(f"{place['bus']}:{place['slot']}.{int(place['function'])}") if place else ""
    return Event(kind=kind, lines=(line,), device=device, data=data)


DECODER = Decoder(id="event_log", needles=(b"sserted",), decode=each(("sserted",), _parse))
