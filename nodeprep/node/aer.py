"""AER counters of one PCI function, from sysfs.

Real kernels (4.19 and later) have aer_dev_correctable, aer_dev_nonfatal and aer_dev_fatal on every
device with the capability, and aer_rootport_total_err_* on root ports.
Source: Documentation/ABI/testing/sysfs-bus-pci-devices-aer.
"""

from __future__ import annotations

from typing import Any, Callable, Dict

from .config_space import ConfigSpace
from .paths import exists, read_text
from .reading import NotSupported, attempt


def collect(root: str, folder: str, config: Callable[[], ConfigSpace]) -> Dict[str, Any]:
    """The "aer" part of one PCI device.

    Args:
        root: Root of the machine.
        folder: The device's folder in sysfs.
        config: Gives the device's configuration space, or raises why it cannot.
    """
    return {
        "correctable": attempt(counters, root, f"{folder}/aer_dev_correctable", config),
        "non_fatal": attempt(counters, root, f"{folder}/aer_dev_nonfatal", config),
        "fatal": attempt(counters, root, f"{folder}/aer_dev_fatal", config),
        "reporting": attempt(lambda: config().reporting()),
        "rootport_correctable": attempt(total, root, f"{folder}/aer_rootport_total_err_cor"),
        "rootport_non_fatal": attempt(total, root, f"{folder}/aer_rootport_total_err_nonfatal"),
        "rootport_fatal": attempt(total, root, f"{folder}/aer_rootport_total_err_fatal"),
        "rootport_reporting": attempt(lambda: config().rootport_reporting()),
    }


def counters(root: str, path: str, config: Callable[[], ConfigSpace]) -> Dict[str, int]:
    """Counters by error name.

    Raises:
        NotSupported: The kernel keeps none for this device; says whether the device could have.
        OSError: They cannot be read.
        ValueError: A line is not a name and a count.
    """
    if not exists(root, path):
        raise NotSupported(_why_missing(config))
    return parse_counters(read_text(root, path))


def parse_counters(text: str) -> Dict[str, int]:
    """One `NAME COUNT` a line; names may contain blanks, so the last one divides.

    The TOTAL_* lines are left out: the kernel counts them apart, and they may differ from the sum.

    Raises:
        ValueError: A line is not a name and a count.
    """
    found: Dict[str, int] = {}
    for line in text.splitlines():
        name, _, count = line.strip().rpartition(" ")
        if not name or not count.isdigit():
            raise ValueError(f"not an AER counter: {line!r}")
        if not name.startswith("TOTAL_"):
            found[name.strip()] = int(count)
    if not found:
        raise ValueError("the AER counter file is empty")
    return found


def total(root: str, path: str) -> int:
    """A root port's count of error messages it received.

    Raises:
        NotSupported: The device keeps no such total.
        OSError: It cannot be read.
        ValueError: It is not a number.
    """
    if not exists(root, path):
        raise NotSupported("kept on root ports only, by a kernel with AER")
    return int(read_text(root, path))


def _why_missing(config: Callable[[], ConfigSpace]) -> str:
    try:
        has_capability = config().aer_offset() is not None
    except (OSError, ValueError, NotSupported) as problem:
        return f"the kernel keeps no AER counters for this device (capability unknown: {problem})"
    if has_capability:
        return "the device has AER, but this kernel keeps no counters for it (built without PCIe AER)"
    return "the device has no AER capability"
