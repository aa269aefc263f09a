"""PCI Express Advanced Error Reporting of every kernel era, several lines an event."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from nodeprep.diagnose import catalog
from nodeprep.diagnose.decoder import Decoder
from nodeprep.diagnose.decoders._each import bounded
from nodeprep.diagnose.device import ADDRESS, address, domain, from_requester_id
from nodeprep.diagnose.event import Event
from nodeprep.diagnose.line import Line

_DEVICE = rf"(?:(?P<driver>[\w.-]+) )?(?P<device>{ADDRESS}): "
_SEVERITY = r"(?P<severity>Correct(?:ed|able)|Uncorrect(?:ed|able)(?: \((?P<fatal>Non-Fatal|Fatal)\))?)"
_RECEIVED = re.compile(
    _DEVICE + rf"AER: (?P<multiple>Multiple )?{_SEVERITY} error (?:message )?received(?: from)?:? "
    rf"(?:id=(?P<id>[0-9a-fA-F]{{4}})|(?P<source>{ADDRESS}))?",
    re.IGNORECASE,
)
_BUS_ERROR = re.compile(
    _DEVICE + rf"(?:AER: )?(?:PCIe|CXL) Bus Error: (?:severity=)?{_SEVERITY},"
    r"(?: type=(?P<layer>[\w ]+?)"
    r"(?:, (?:id=(?P<id>[0-9a-fA-F]{4}))? ?\(?(?P<agent>\w+(?: \w+){0,2})?\)?)?)?\s*$",
    re.IGNORECASE,
)
# A paste that was broken by hand at the comma: the rest of the head and its first bit stand on the next line.
_BROKEN_OFF = re.compile(
    r"\s*(?:type=(?P<layer>[\w ]+), \((?P<agent>[\w ]+)\)\s*)?\[ ?\d{1,2}\] (?P<name>\w+)\s*\(First\)\s*$"
)
_STATUS = re.compile(
    _DEVICE + r"(?:AER: )?\s*device \[(?P<ids>[0-9a-fA-F]{4}:[0-9a-fA-F]{4})\] error status/mask="
    r"(?P<status>[0-9a-fA-F]+)/(?P<mask>[0-9a-fA-F]+)"
)
_BIT = re.compile(
    _DEVICE + r"(?:AER: )?\s*\[ ?(?P<bit>\d{1,2})\] (?P<name>\S.*?)\s*(?P<first>\(First\))?\s*$"
)
_TLP = re.compile(_DEVICE + r"(?:AER: )?\s*TLP Header:")
_NO_DETAILS = re.compile(
    _DEVICE + r"(?:AER: )?(?:can't find device of ID(?P<id>[0-9a-fA-F]{4})|found no error details for|"
    r".*\(no details found)"
)
_AGENT_FIRST = re.compile(r"Error of this Agent(?:\(?\w*\)?)? is reported first")
_GHES_STATUS = re.compile(
    _DEVICE + r"(?:AER: )?aer_status: 0x(?P<status>[0-9a-fA-F]+), aer_mask: 0x(?P<mask>[0-9a-fA-F]+)"
)
_RECOVERY = re.compile(
    _DEVICE + r"(?:AER: )?(?:device recovery (?P<result>failed|successful)|"
    r"can't recover \(no error_detected callback\)|(?P<reset>(?:Root|Downstream) Port link has been reset))"
)
_SUPPRESSED = re.compile(r"aer_ratelimit: (?P<count>\d{1,18}) callbacks suppressed")
_MAX_LINES_APART = 40
# Source: Linux, drivers/pci/controller/vmd.c, vmd_find_free_domain: its domains begin after the 16-bit ones.
_LAST_REAL_DOMAIN = 0xFFFF


@dataclass(slots=True)
class _Open:
    """An error whose lines are still coming in."""

    device: str
    severity: str
    lines: list[Line]
    names: list[str] = field(default_factory=list)
    data: dict[str, Any] = field(default_factory=dict)


def decode(lines: Iterable[Line]) -> Iterator[Event]:
    """Events `aer.CLASS.TYPE`, `aer.recovery_failed`, `aer.recovered`, `aer.suppressed`."""
    reader = _Reader()
    for line in bounded(lines):
        text = line.text
        if any(
            word in text for word in ("AER", "Bus Error", "error status/mask", "] ", "aer_", "TLP Header")
        ):
            yield from reader.take(line)
    yield from reader.close()


class _Reader:
    """The state between the lines of one error."""

    def __init__(self) -> None:
        # The port tells of the message, the device of the error: what was announced and is not yet told.
        self._announced: list[Line] = []
        self._severity = ""
        self._reporter = ""
        self._source = ""
        self._multiple = False
        self._open: _Open | None = None

    def take(self, line: Line) -> Iterator[Event]:
        """What becomes whole with this line."""
        text = line.text
        if self._open and line.number - self._open.lines[-1].number > _MAX_LINES_APART:
            yield from self.close()
        if match := _RECEIVED.search(text):
            yield from self.close()
            self._announced = [line]
            self._reporter = address(match["device"])
            self._severity = _class(match["severity"], match["fatal"])
            self._source = _sender(match, self._reporter)
            self._multiple = bool(match["multiple"])
        elif match := _BUS_ERROR.search(text):
            yield from self._told()
            self._begin(line, match)
        elif match := _STATUS.search(text):
            self._status(line, match)
        elif match := _GHES_STATUS.search(text):
            yield from self.close()
            self._firmware_first(line, match)
        elif self._open and (match := _BIT.search(text)) and address(match["device"]) == self._open.device:
            self._open.lines.append(line)
            self._open.names.append(match["name"])
        elif self._open and (match := _BROKEN_OFF.match(text)) and _follows(line, self._open.lines[-1]):
            self._open.lines.append(line)
            self._open.names.append(match["name"])
            self._open.data.update({key: match[key] for key in ("layer", "agent") if match[key]})
        elif self._open and (_TLP.search(text) or _AGENT_FIRST.search(text)):
            self._open.lines.append(line)
        elif match := _NO_DETAILS.search(text):
            if self._announced:
                self._announced.append(line)
            yield from self.close()
        elif match := _RECOVERY.search(text):
            yield from self.close()
            failed = not match["reset"] and match["result"] != "successful"
            kind = "aer.recovery_failed" if failed else "aer.recovered"
            yield Event(kind=kind, lines=(line,), device=address(match["device"]))
        elif match := _SUPPRESSED.search(text):
            yield Event(kind="aer.suppressed", lines=(line,), data={"suppressed": int(match["count"])})

    def close(self) -> Iterator[Event]:
        """What is still open, also an announcement that no detail followed."""
        yield from self._told()
        if self._announced:
            device = self._reporter
            # Zen ports name 00:00.0 as the source of what is theirs.
            if self._source and not self._source.endswith(":00:00.0"):
                device = self._source
            yield Event(
                kind=f"aer.{self._severity}.unknown",
                lines=tuple(self._announced),
                device=device,
                data={"reporter": self._reporter},
                count=1,
            )
        self._announced = []

    def _told(self) -> Iterator[Event]:
        if self._open:
            yield _event(self._open)
        self._open = None

    def _begin(self, line: Line, match: re.Match[str]) -> None:
        data = {"layer": match["layer"].strip()} if match["layer"] else {}
        if match["agent"]:
            data["agent"] = match["agent"]
        if self._announced:
            data["reporter"] = self._reporter
        self._open = _Open(
            device=address(match["device"]),
            severity=_class(match["severity"], match["fatal"]),
            lines=[*self._announced, line],
            data=data,
        )
        self._announced = []

    def _status(self, line: Line, match: re.Match[str]) -> None:
        if not self._open or address(match["device"]) != self._open.device:
            return
        self._open.lines.append(line)
        self._open.data["status"] = int(match["status"], 16)
        self._open.data["mask"] = int(match["mask"], 16)
        self._open.data["ids"] = match["ids"].lower()

    def _firmware_first(self, line: Line, match: re.Match[str]) -> None:
        self._open = _Open(
            device=address(match["device"]),
            severity="firmware_first",
            lines=[line],
            data={"status": int(match["status"], 16), "mask": int(match["mask"], 16)},
        )


def _follows(line: Line, before: Line) -> bool:
    return line.source == before.source and line.number == before.number + 1


def _sender(match: re.Match[str], reporter: str) -> str:
    if not match["id"]:
        return address(match["source"] or "")
    # A controller that makes a domain of its own (VMD) counts buses anew; the id has the number outside.
    if int(domain(reporter), 16) > _LAST_REAL_DOMAIN:
        return ""
    return from_requester_id(int(match["id"], 16), domain(reporter))


def _class(severity: str, fatal: str | None) -> str:
    if severity.lower().startswith("correct"):
        return "corrected"
    return "nonfatal" if (fatal or "").lower() == "non-fatal" else "fatal"


def _event(found: _Open) -> Event:
    entry = next((entry for entry in map(catalog.aer, found.names) if entry), None)
    if entry is None:
        bits = found.data.get("status", 0) & ~found.data.get("mask", 0)
        error_class = "corrected" if found.severity == "corrected" else "uncorrected"
        entry = next(iter(catalog.aer_bits(error_class, bits)), None)
    kind = f"aer.{found.severity}.{entry.id if entry else 'unknown'}"
    return Event(kind=kind, lines=tuple(found.lines), device=found.device, data=found.data)


DECODER = Decoder(
    id="aer",
    needles=(
        b"AER: ",
        b"Bus Error: severity",
        b"error status/mask",
        b":    [",
        b"(First)",
        b"TLP Header",
        b"aer_",
    ),
    decode=decode,
)
