"""The BMC's event log over IPMI and Redfish: what hardware says of power, heat and buses.

An IPMI entry says sensor, event and direction; one of Redfish the log, the BMC's own severity, a message and,
in brackets, the maker's id of it. `sel.ended` {ended, sensor, event}: what an entry before it said is over;
of any event of the sensor where `event` is "".
The raw data bytes of an IPMI entry are left alone: makers put bus and device of a PCI error in them in
opposite orders, so an address taken from them may be another device's. What ipmitool decoded is taken.
"""

from __future__ import annotations

import re
from functools import cache

from nodeprep.diagnose import catalog
from nodeprep.diagnose.decoder import Decoder
from nodeprep.diagnose.decoders._each import each
from nodeprep.diagnose.device import address
from nodeprep.diagnose.event import Event
from nodeprep.diagnose.line import Line

_ENDED = re.compile(r"\bDeassert(?:ed|ion)?\b|\bhas recovered\b", re.IGNORECASE)
# All is well; an entry that takes that back is the loss and no end.
_WELL = re.compile(r"\b(?:Fully Redundant|Redundancy Regained|Transition to OK)\b", re.IGNORECASE)
# Of a part it says that it is there, and of its health nothing.
_THERE = re.compile(r"\bPresence detected\b", re.IGNORECASE)
# The form that live BMCs over Redfish are read in; see workflows/diagnose.py.
_REDFISH = re.compile(r"[^|]{1,100}\| (?P<severity>OK|Informational|Warning|Critical): ", re.IGNORECASE)
_IDS = re.compile(r"\b(?:\w{1,40}\.\d[\d.]{0,12}\.)?(?P<id>[A-Za-z]{2,40}\d{0,6}[A-Z]?)(?=[,)])")
_MODULE = re.compile(r"(?P<place>[\w-]{0,16}DIMM[\w-]{0,16}(?:\(CPU\d{1,2}\))?)(?![\w ]*ECC)")
_SLOT = re.compile(r"\b(?P<place>(?:PCIe? )?(?:slot|bay) \d{1,3})\b", re.IGNORECASE)
# Decimal in the messages of Dell, hexadecimal with 0x in those of HPE; other forms may be either.
_ADDRESS = re.compile(
    r"\bbus (?P<bus>\d{1,3}|0x[\da-f]{1,2}),? device (?P<device>\d{1,2}|0x[\da-f]{1,2}),? "
    r"function (?P<function>(?:0x)?[0-7])\b",
    re.IGNORECASE,
)
# Source: ipmitool, decoded event data of Quanta servers.
_QUANTA = re.compile(r"\bB(?P<bus>[\da-fA-F]{2})/D(?P<device>[01][\da-fA-F])/F0?(?P<function>[0-7])\b")
_COMES = re.compile(r"[^|]{1,100}\|[^|]{0,200}\| ?Asserted\b")
_UNLISTED = {"critical": "sel.unlisted_critical", "warning": "sel.unlisted_warning"}


@cache
def _words() -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple((each.kind, re.compile(each.pattern, re.IGNORECASE)) for each in catalog.event_log().words)


def _parse(line: Line) -> Event | None:
    if "|" not in line.text:
        return None
    redfish = _REDFISH.match(line.text)
    good = _WELL.search(line.text) or _THERE.search(line.text)
    ended = bool(_ENDED.search(line.text)) != bool(good)
    if redfish:
        # Which entry it ends is not told: its first column is the log and no sensor.
        kind = "" if ended else _of_redfish(line.text, redfish["severity"].lower())
        data = _place(line.text)
    else:
        kind = _of_ipmi(line)
        sensor, event, *_ = line.text.split("|")
        data = {"sensor": sensor.strip(), "event": _plain(event), **_place(line.text)}
        well = _WELL.search(line.text)
        if ended and (kind or well):
            of = {"ended": kind, "event": "" if well else data["event"]}
            return Event(kind="sel.ended", lines=(line,), data={**data, **of})
    if not kind or ended:
        return None
    return Event(kind=kind, lines=(line,), device=_device(line.text, kind), data=data)


def _of_redfish(text: str, severity: str) -> str:
    """The kind by the maker's id, else by the words, else by what the BMC thinks of it; "" for no trouble."""
    for found in _IDS.finditer(text):
        entry = catalog.event_log_message(found["id"])
        if entry is not None:
            return entry.kind
    if severity not in _UNLISTED:
        return ""
    return _by_words(text) or _UNLISTED[severity]


def _plain(event: str) -> str:
    """An event without its direction and data, which stand in brackets over IPMI."""
    return event.partition("(")[0].strip().lower()


def _of_ipmi(line: Line) -> str:
    """The kind by the words; an entry that comes is shown raw where none fit, one that ends is not."""
    kind = _by_words(line.text)
    # Tables of other programs have columns as well; the readers of event logs say that it is no kernel's.
    if kind is None and line.kernel is False and _COMES.match(line.text):
        return _UNLISTED["warning"]
    return kind or ""


def _by_words(text: str) -> str | None:
    """The kind, "" for what is known to be no trouble; None when no words fit."""
    return next((kind for kind, pattern in _words() if pattern.search(text)), None)


def _place(text: str) -> dict[str, str]:
    found = _MODULE.search(text) or _SLOT.search(text)
    return {"place": found["place"]} if found else {}


def _device(text: str, kind: str) -> str:
    """The PCI address; the messages name no segment, and the first is meant."""
    data = _QUANTA.search(text) if kind.startswith("sel.pcie") else None
    if data:
        return address(f"{data['bus']}:{data['device']}.{data['function']}")
    found = _ADDRESS.search(text)
    if found is None:
        return ""
    bus, device, function = (int(found[name], 0) for name in ("bus", "device", "function"))
    return f"0000:{bus:02x}:{device:02x}.{function}" if bus < 256 and device < 32 else ""


DECODER = Decoder(id="event_log", needles=(b"sserted",), decode=each(("sserted",), _parse))
