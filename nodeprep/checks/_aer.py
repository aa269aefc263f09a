"""Who owns AER on the way to a GPU, which decides whether its counters mean anything."""

from __future__ import annotations

from dataclasses import dataclass

from nodeprep.checks._hops import Way
from nodeprep.model.facts import AerOwnership, NodeFacts
from nodeprep.model.reading import Unreadable
from nodeprep.node.kernel_cmdline import Argument, parse

SEVERITIES = ("correctable", "non_fatal", "fatal")

_ASPM_OFF = Argument("pcie_aspm", "off")


@dataclass(frozen=True, slots=True)
class Loss:
    """Errors on a way that do not reach the kernel.

    Attributes:
        why: The reason, and what to do about it.
        blind: The kernel was not given AER at all: its zeros say nothing, neither good nor bad.
    """

    why: str
    blind: bool = False


def why_not_owned(document: NodeFacts, found: Way) -> str:
    """Why nobody counts AER errors on this way; "" when the kernel does.

    Raises:
        Unreadable: As `loss`.
    """
    lost = loss(document, found)
    return lost.why if lost else ""


def loss(document: NodeFacts, found: Way) -> Loss | None:
    """What of the AER errors on this way does not reach the kernel; None when all do.

    Raises:
        Unreadable: It cannot be known, or somebody else than the kernel counts.
    """
    if not found.port_in_sight:
        raise Unreadable(f"{found.out_of_sight}: its AER errors are unknown, not zero")
    ownership = document.aer_ownership
    if ownership.firmware_first.require("whether firmware handles PCIe errors first (APEI HEST)"):
        raise Unreadable(
            "firmware handles PCIe errors first (APEI HEST): the kernel's counters stay at zero whatever "
            "happens; the BMC's event log (SEL) is the source"
        )
    if ownership.noaer.require("whether pci=noaer is on the command line"):
        return Loss("pci=noaer turned AER off")
    blind = _why_not_granted(document, ownership, found.hops[0].address)
    if blind:
        return Loss(blind, blind=True)
    silent = _why_not_reported(found)
    return Loss(silent) if silent else None


def _why_not_granted(document: NodeFacts, ownership: AerOwnership, root_port: str) -> str:
    if ownership.ports_native.require("whether pcie_ports=native is on the command line"):
        return ""
    bus = root_port.rsplit(":", 1)[0]
    bridges = ownership.root_bridges.require("the list of root bridges")
    bridge = next((bridge for bridge in bridges if bridge.bus == bus), None)
    if bridge is None:
        raise Unreadable(f"the kernel log names no root bridge for bus {bus}")
    name = bridge.acpi_name or bus
    if "AER" in bridge.controls.require(f"what _OSC granted on root bridge {name}"):
        return ""
    # Only for the words; that AER is blind does not depend on it.
    by_argument = _ASPM_OFF in parse(document.boot.cmdline.value or "")
    cause = (
        "blind because of pcie_aspm=off, with which the kernel does not ask for it"
        if by_argument
        else "blind"
    )
    advice = (
        "add pcie_ports=native, or take pcie_aspm.policy=performance and the BIOS setting in its place"
        if by_argument
        else "look for AER and firmware-first options in the BIOS"
    )
    return (
        f"AER is {cause}: the kernel was not given AER on root bridge {name} ({bridge.evidence}), and its "
        f"counters would read zero for ever; {advice}"
    )


def _why_not_reported(found: Way) -> str:
    root = found.hops[0]
    enabled = root.device.aer.rootport_reporting.require(f"Root Error Command of {root.address}")
    silent = [severity for severity in SEVERITIES if severity not in enabled]
    if silent:
        return f"root port {root.address} does not report {', '.join(silent)} errors (Root Error Command)"
    for hop in found.hops:
        enabled = hop.device.aer.reporting.require(f"error reporting (DevCtl) of {hop.address}")
        silent = [severity for severity in SEVERITIES if severity not in enabled]
        if silent:
            return f"{hop.address} does not report {', '.join(silent)} errors (DevCtl)"
    return ""
