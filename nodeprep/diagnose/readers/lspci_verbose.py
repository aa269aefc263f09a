"""`lspci -v` to `-vvv`: link, ASPM, ACS and AER state of each function.

Events `lspci.device`, one a function, device its address, with of these what the listing shows:
class_name, name, vendor ("nvidia" or ""), driver, link_cap_speed_gts, link_cap_width_lanes, link_speed_gts,
link_width_lanes, speed_downgraded, width_downgraded, aspm (as set: "Disabled", "L1"), aspm_supported,
acs_on (flags of ACSCtl that are on), uncorrected and corrected (error flags of UESta and CESta that are
set), secondary_bus and subordinate_bus. A listing without root shows no capabilities: `no_access` is true.

Registers that somebody cut out of it (grep) make a function as well: of the address that the command names
(`lspci -vv -s 41:00.0`), with `cut_out` true.

`pci.bridge` {first_bus, last_bus} and `pci.device` {vendor, id} are those of the kernel's own lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from nodeprep.diagnose.device import ADDRESS, address
from nodeprep.diagnose.event import Event
from nodeprep.diagnose.line import Line
from nodeprep.diagnose.reader import Item, RawLine, Reader
from nodeprep.diagnose.readers._document import lines_of

_HEADER = (
    r"(?P<address>(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]) (?P<class>[A-Z0-9][^:\[\"]{2,60}?)"
    r"(?: \[(?P<class_id>[0-9a-f]{4})\])?: (?P<name>.+)"
)
_HEADER_TEXT = re.compile(_HEADER)
_OPENS = re.compile(_HEADER.encode())
_COMMAND = re.compile(rf"\blspci\b.{{0,60}}? -[a-z]{{0,6}}s ?(?P<address>{ADDRESS})\b")
_CUT_OUT = re.compile(rb"\s{0,16}Lnk(?:Cap|Sta|Ctl):\s")
_ID = re.compile(r"\[(?P<vendor>[0-9a-f]{4}):(?P<id>[0-9a-f]{4})\]")
_LINK_CAP = re.compile(
    r"\s*LnkCap:\s.*?Speed (?P<speed>[\d.]+)GT/s, Width x(?P<width>\d+)(?:, ASPM (?P<aspm>[^,;]+))?"
)
_LINK_STATE = re.compile(
    r"\s*LnkSta:\s.*?Speed (?P<speed>[\d.]+)GT/s(?: \((?P<speed_word>\w+)\))?, "
    r"Width x(?P<width>\d+)(?: \((?P<width_word>\w+)\))?"
)
_LINK_CONTROL = re.compile(r"\s+LnkCtl:\s+ASPM (?P<aspm>[^;]+);")
_BUSES = re.compile(
    r"\s+Bus: primary=[0-9a-f]{2}, secondary=(?P<first>[0-9a-f]{2}), subordinate=(?P<last>[0-9a-f]{2})"
)
_FLAGS = re.compile(r"\s+(?P<register>ACSCtl|UESta|CESta):\s+(?P<flags>.+)")
_ON = re.compile(r"([A-Za-z]+)\+")
_DRIVER = re.compile(r"\s+Kernel driver in use: (?P<driver>\S+)")
_NO_ACCESS = re.compile(r"\s+Capabilities: <access denied>")
_NAMES = {"ACSCtl": "acs_on", "UESta": "uncorrected", "CESta": "corrected"}
_NVIDIA = "10de"
_GPU_CLASS = re.compile(r"(?:VGA|3D|Display)\b.*ontroller")


@dataclass(slots=True)
class _Function:
    device: str
    lines: list[Line]
    data: dict[str, Any] = field(default_factory=dict)

    def take(self, line: Line) -> None:  # one branch a register
        text = line.text
        before = len(self.data)
        if match := _LINK_CAP.match(text):
            self.data["link_cap_speed_gts"] = float(match["speed"])
            self.data["link_cap_width_lanes"] = int(match["width"])
            if match["aspm"]:
                self.data["aspm_supported"] = match["aspm"].strip()
        elif match := _LINK_STATE.match(text):
            self.data["link_speed_gts"] = float(match["speed"])
            self.data["link_width_lanes"] = int(match["width"])
            self.data["speed_downgraded"] = match["speed_word"] == "downgraded"
            self.data["width_downgraded"] = match["width_word"] == "downgraded"
        elif match := _LINK_CONTROL.match(text):
            self.data["aspm"] = match["aspm"].removesuffix(" Enabled").strip()
        elif match := _BUSES.match(text):
            self.data["secondary_bus"] = int(match["first"], 16)
            self.data["subordinate_bus"] = int(match["last"], 16)
        elif match := _FLAGS.match(text):
            self.data[_NAMES[match["register"]]] = tuple(_ON.findall(match["flags"]))
        elif match := _DRIVER.match(text):
            self.data["driver"] = match["driver"]
        elif _NO_ACCESS.match(text):
            self.data["no_access"] = True
        if len(self.data) > before:
            self.lines.append(line)

    def holds_link(self) -> bool:
        """Whether it is a cut-out whose link was told: another link is of another device."""
        return bool(self.data.get("cut_out")) and "link_cap_speed_gts" in self.data

    def events(self) -> Iterator[Event]:
        head = self.lines[0]
        yield Event(kind="lspci.device", lines=tuple(self.lines), device=self.device, data=self.data)
        if "secondary_bus" in self.data:
            buses = {"first_bus": self.data["secondary_bus"], "last_bus": self.data["subordinate_bus"]}
            yield Event(kind="pci.bridge", lines=(head,), device=self.device, data=buses)
        elif self.data["vendor"] == "nvidia" and _GPU_CLASS.match(self.data["class_name"]):
            known = {"vendor": _NVIDIA, "id": self.data.get("id", "")}
            yield Event(kind="pci.device", lines=(head,), device=self.device, data=known)


def _sniff(lines: Sequence[bytes]) -> int:
    written = [line for line in lines if line.strip()]
    if not written:
        return 0
    headers = sum(1 for line in written if _OPENS.match(line))
    below = sum(1 for line in written if line[:1] in (b"\t", b" "))
    if not headers:
        return 60 if any(_CUT_OUT.match(line) for line in written) else 0
    return 93 if headers + below >= len(written) - 1 else 10


def _read(source: str, lines: Iterator[RawLine]) -> Iterator[Item]:
    function: _Function | None = None
    named = ""
    for line in lines_of(source, lines):
        yield line
        if function is None and (command := _COMMAND.search(line.text)):
            named = address(command["address"])
        header = _HEADER_TEXT.match(line.text)
        if header is not None:
            if function is not None:
                yield from function.events()
            function = _function(header, line)
        elif _LINK_CAP.match(line.text) and (function is None or function.holds_link()):
            if function is not None:
                yield from function.events()
            function, named = _cut_out(named, line), ""
        elif function is not None:
            function.take(line)
    if function is not None:
        yield from function.events()


def _cut_out(device: str, line: Line) -> _Function:
    data: dict[str, Any] = {"class_name": "", "name": "", "vendor": "", "cut_out": True}
    function = _Function(device, [line], data)
    function.take(line)
    return function


def _function(header: re.Match[str], line: Line) -> _Function:
    name = header["name"].strip()
    identity = _ID.search(name)
    nvidia = "NVIDIA" in name or (identity is not None and identity["vendor"] == _NVIDIA)
    data: dict[str, Any] = {
        "class_name": header["class"].strip(),
        "name": name,
        "vendor": "nvidia" if nvidia else "",
    }
    if identity is not None:
        data["id"] = identity["id"]
    return _Function(address(header["address"]), [line], data)


READER = Reader(id="lspci_verbose", sniff=_sniff, read=_read, whole=True, opens=_OPENS)
