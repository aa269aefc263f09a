"""Who owns AER on the way to a GPU, which decides whether its counters mean anything."""

from __future__ import annotations

from nodeprep.checks._hops import Way
from nodeprep.model.facts import AerOwnership, NodeFacts
from nodeprep.model.reading import Unreadable

SEVERITIES = ("correctable", "non_fatal", "fatal")


def why_not_owned(document: NodeFacts, found: Way) -> str:
    """Why nobody counts AER errors on this way; "" when the kernel does.

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
        return "pci=noaer turned AER off"
    return _why_not_granted(document, ownership, found.hops[0].address) or _why_not_reported(found)


def _why_not_granted(document: NodeFacts, ownership: AerOwnership, root_port: str) -> str:
    if ownership.ports_native.require("whether pcie_ports=native is on the command line"):
        return ""
    bus = root_port.rsplit(":", 1)[0]
    bridges = ownership.root_bridges.require("the list of root bridges")
    bridge = next((bridge for bridge in bridges if bridge.bus == bus), None)
    if bridge is None:
        raise Unreadable(f"the kernel log names no root bridge for bus {bus}")
    controls = bridge.controls.require(f"what _OSC granted on root bridge {bridge.acpi_name or bus}")
    if "AER" in controls:
        return ""
    # Only for the advice; the finding above does not depend on it.
    blinded = "pcie_aspm=off" in (document.boot.cmdline.value or "").split()
    advice = (
        "; pcie_aspm=off made the kernel not ask for it: add pcie_ports=native, or use "
        "pcie_aspm.policy=performance instead"
        if blinded
        else ""
    )
    return (
        f"the kernel was not given AER on root bridge {bridge.acpi_name or bus} ({bridge.evidence}){advice}"
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
