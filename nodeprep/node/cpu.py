"""Logical CPUs as the kernel has them and as firmware says they are.

`iommu=off` on AMD loses interrupt remapping, with it x2APIC, and with that every CPU whose APIC id
is above 255: such a node boots, but with fewer CPUs online than firmware describes.
"""

from __future__ import annotations

from typing import Any, Dict

from .paths import read_text
from .reading import NotSupported, attempt
from .smbios import processor_threads

FIELDS = ("model", "present", "online", "dmi_threads", "hypervisor")


def collect(root: str) -> Dict[str, Any]:
    """The "cpu" part of the facts."""
    return {
        "model": attempt(model, root),
        "present": attempt(_count, root, "/sys/devices/system/cpu/present"),
        "online": attempt(_count, root, "/sys/devices/system/cpu/online"),
        "dmi_threads": attempt(processor_threads, root),
        "hypervisor": attempt(hypervisor, root),
    }


def model(root: str) -> str:
    """The model name of the first CPU.

    Raises:
        NotSupported: The architecture's /proc/cpuinfo names no model (Arm).
    """
    return _cpuinfo_field(root, "model name")


def hypervisor(root: str) -> bool:
    """True inside a virtual machine: CPUID leaf 1 says so to every guest that is not hidden from.

    Raises:
        NotSupported: The architecture's /proc/cpuinfo has no flags (Arm).
    """
    return "hypervisor" in _cpuinfo_field(root, "flags").split()


def count_cpus(mask: str) -> int:
    """Number of CPUs in a sysfs list such as "0-111,224-335".

    Raises:
        ValueError: It is not such a list.
    """
    count = 0
    for item in mask.split(","):
        first, _, last = item.partition("-")
        count += int(last or first) - int(first) + 1
    return count


def _count(root: str, path: str) -> int:
    return count_cpus(read_text(root, path))


def _cpuinfo_field(root: str, name: str) -> str:
    for line in read_text(root, "/proc/cpuinfo").splitlines():
        key, separator, value = line.partition(":")
        if separator and key.strip() == name:
            return value.strip()
    raise NotSupported(f"/proc/cpuinfo has no {name!r} line on this architecture")
