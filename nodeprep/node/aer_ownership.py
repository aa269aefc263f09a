"""Who owns AER: what firmware granted each PCI root bridge by _OSC, and what overrides it.

Counters of a device whose errors nobody owns read zero for ever. The kernel says what it was
granted once, early at boot, in its log; there is no other place to read it from.
Source: drivers/acpi/pci_root.c of Linux 4.18 to 6.16, negotiate_os_control().
"""

from __future__ import annotations

import os
import re
from typing import Any, Dict, Iterable, List, NamedTuple

from .boot import kernel_arguments
from .boot_log import journal_lines
from .hest import firmware_first
from .paths import exists, is_real, list_folder, under
from .reading import Reading, attempt, error, not_supported, ok

FIELDS = ("root_bridges", "noaer", "ports_native", "firmware_first")

_BRIDGE = re.compile(r"pci([0-9a-f]{4,8}:[0-9a-f]{2})")
_LINE = re.compile(r"acpi (?P<name>[A-Z]{3,4}[0-9A-F]{4}:[0-9a-f]+): (?P<rest>.*)")
# "assumes" is the path of machines that never negotiate; a CXL bridge prints a second "now controls".
_GRANT = re.compile(r"_OSC: OS (?:now controls|assumes control of) \[(?P<controls>[^\]]*)\]")
_REFUSAL = re.compile(
    r"_OSC: not requesting OS control|.*not requesting _OSC control|_OSC: platform retains control|"
    r"_OSC(?: request)? failed|_OSC: disabled|.*_OSC control .*not granted"
)


class Grant(NamedTuple):
    """What one bridge was granted, and the log line that says so."""

    controls: List[str]
    evidence: str


def collect(root: str, cmdline: Reading, records: Reading) -> Dict[str, Any]:
    """The "aer_ownership" part of the facts.

    Args:
        root: Root of the machine.
        cmdline: The kernel command line.
        records: All kernel log records (kernel_log.Record), oldest first.
    """
    return {
        "root_bridges": attempt(root_bridges, root, records),
        "noaer": _from_cmdline(cmdline, noaer),
        "ports_native": _from_cmdline(cmdline, ports_native),
        "firmware_first": attempt(firmware_first, root),
    }


def noaer(cmdline: str) -> bool:
    """True when `pci=...,noaer,...` is on the command line."""
    options = (value for key, value in _pairs(cmdline) if key == "pci")
    return any("noaer" in value.split(",") for value in options)


def ports_native(cmdline: str) -> bool:
    """True when `pcie_ports=native` is on the command line."""
    return ("pcie_ports", "native") in _pairs(cmdline)


def root_bridges(root: str, records: Reading) -> List[Dict[str, Any]]:
    """Every PCI host bridge with what the kernel controls below it.

    Raises:
        OSError: sysfs cannot be read.
    """
    buses = [m.group(1) for m in map(_BRIDGE.fullmatch, list_folder(root, "/sys/devices")) if m]
    names = {bus: _acpi_name(root, bus) for bus in buses}
    grants, unknown = _grants(root, records)
    return [_bridge(bus, names[bus], grants, unknown) for bus in buses]


def parse_grants(lines: Iterable[str]) -> Dict[str, Grant]:
    """What each bridge was granted, by ACPI name, from kernel log lines. A refusal grants nothing."""
    grants: Dict[str, Grant] = {}
    for line in lines:
        match = _LINE.match(line)
        if match is None:
            continue
        name, rest = match.group("name"), match.group("rest")
        granted = _GRANT.match(rest)
        if granted:
            before = grants.get(name, Grant([], line))
            added = [
                control for control in granted.group("controls").split() if control not in before.controls
            ]
            evidence = before.evidence if before.controls else line
            grants[name] = Grant(before.controls + added, evidence)
        elif _REFUSAL.match(rest) and name not in grants:
            grants[name] = Grant([], line)
    return grants


def _bridge(bus: str, name: str, grants: Dict[str, Grant], unknown: str) -> Dict[str, Any]:
    grant = grants.get(name)
    if grant is not None:
        controls, evidence = ok(grant.controls), grant.evidence
    elif not name:
        controls, evidence = not_supported("the bridge has no ACPI node: nothing was negotiated"), ""
    else:
        controls, evidence = error(unknown), ""
    return {"acpi_name": name, "bus": bus, "controls": controls, "evidence": evidence}


def _grants(root: str, records: Reading) -> "tuple[Dict[str, Grant], str]":
    """Grants by ACPI name, and why a bridge may be missing from them."""
    if records["state"] != "ok":
        return {}, f"the kernel log is unreadable: {records['detail']}"
    grants = parse_grants(record.text for record in records["value"])
    overwritten = bool(records["value"]) and records["value"][0].sequence > 0
    if not overwritten:
        return grants, "the kernel log has no _OSC line for this bridge"
    why = "the early kernel log, which has the _OSC lines, is overwritten"
    if is_real(root):
        journal = attempt(journal_lines)
        if journal["state"] == "ok":
            return {**parse_grants(journal["value"]), **grants}, f"{why}, and the journal does not have them"
        why += f", and the journal is unreadable: {journal['detail']}"
    return grants, why


def _acpi_name(root: str, bus: str) -> str:
    path = f"/sys/devices/pci{bus}/firmware_node"
    return os.path.basename(os.readlink(under(root, path))) if exists(root, path) else ""


def _from_cmdline(cmdline: Reading, question: Any) -> Reading:
    if cmdline["state"] != "ok":
        return error(f"the kernel command line is unreadable: {cmdline['detail']}")
    return ok(question(cmdline["value"]))


def _pairs(cmdline: str) -> "list[tuple[str, str]]":
    split = (argument.partition("=") for argument in kernel_arguments(cmdline))
    return [(key, value) for key, _, value in split]
