"""Kernel log lines of hardware faults, worded as Linux 6.8 and the NVIDIA R580 driver word them.

Source: drivers/pci/pcie/aer.c of Linux 6.8; public logs for the NVRM lines.
"""

from __future__ import annotations

from dataclasses import dataclass

KERN_ERR = 3
KERN_WARNING = 4
KERN_INFO = 6


@dataclass(frozen=True, slots=True)
class KernelLine:
    """One line with its syslog priority."""

    priority: int
    text: str


@dataclass(frozen=True, slots=True)
class CorrectableBit:
    """A bit of the AER correctable error status register.

    Source: PCI Express Base Specification, AER capability; names as aer_correctable_error_string
    in the kernel prints them and as aer_dev_correctable lists them.
    """

    bit: int
    name: str
    layer: str
    agent: str


RX_ERR = CorrectableBit(0, "RxErr", "Physical Layer", "Receiver ID")
BAD_TLP = CorrectableBit(6, "BadTLP", "Data Link Layer", "Receiver ID")
BAD_DLLP = CorrectableBit(7, "BadDLLP", "Data Link Layer", "Receiver ID")
ROLLOVER = CorrectableBit(8, "Rollover", "Data Link Layer", "Transmitter ID")
TIMEOUT = CorrectableBit(12, "Timeout", "Data Link Layer", "Transmitter ID")


def aer_correctable(
    *,
    root_port: str,
    reporter: str,
    reporter_id: str,
    driver: str,
    error: CorrectableBit,
    multiple: bool = False,
) -> tuple[KernelLine, ...]:
    """The four lines of one correctable error report.

    Args:
        root_port: Address of the root port that took the message.
        reporter: Address of the device that reported.
        reporter_id: Its vendor and device as "1000:c030".
        driver: The reporter's driver name, for example "pcieport".
        error: What it reported.
        multiple: More errors came in before this one was handled.
    """
    # The kernel marks bit 0 as "(First)" because the First Error Pointer of a correctable report is 0.
    first = " (First)" if error.bit == 0 else ""
    how_many = "Multiple " if multiple else ""
    return (
        KernelLine(
            KERN_INFO,
            f"pcieport {root_port}: AER: {how_many}Correctable error message received from {reporter}",
        ),
        KernelLine(
            KERN_WARNING,
            f"{driver} {reporter}: PCIe Bus Error: severity=Correctable, type={error.layer}, ({error.agent})",
        ),
        KernelLine(
            KERN_WARNING,
            f"{driver} {reporter}:   device [{reporter_id}] error status/mask={1 << error.bit:08x}/0000a000",
        ),
        KernelLine(KERN_WARNING, f"{driver} {reporter}:    [{error.bit:2d}] {error.name:<22}{first}"),
    )


def xid(address: str, code: int, text: str) -> KernelLine:
    """An Xid line of a driver since R570: no pid when none is known, no PCI function."""
    return KernelLine(KERN_ERR, f"NVRM: Xid (PCI:{address.rsplit('.', 1)[0]}): {code}, {text}")


def fallen_off_the_bus(address: str, uuid: str, serial: str) -> tuple[KernelLine, ...]:
    """What the driver says, in its order, when a GPU stops answering on the bus (Xid 79)."""
    board = address.rsplit(".", 1)[0]
    return (
        KernelLine(KERN_ERR, f"NVRM: GPU at PCI:{board}: {uuid}"),
        KernelLine(KERN_ERR, f"NVRM: GPU Board Serial Number: {serial}"),
        xid(address, 79, "GPU has fallen off the bus."),
        KernelLine(KERN_ERR, f"NVRM: GPU {address}: GPU has fallen off the bus."),
        KernelLine(KERN_ERR, f"NVRM: GPU {address}: GPU serial number is {serial}."),
    )
