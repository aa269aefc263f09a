"""Logical CPUs as the kernel has them and as firmware says they are.

`iommu=off` on AMD loses interrupt remapping, with it x2APIC, and with that every CPU whose APIC id
is above 254: such a node boots, but with fewer CPUs online than firmware describes.
"""

from __future__ import annotations

from typing import Any, Dict, List

from .paths import read_text
from .reading import NotSupported, attempt
from .smbios import processor_threads

FIELDS = ("model", "present", "online", "dmi_threads", "hypervisor", "max_apic_id")


def collect(root: str) -> Dict[str, Any]:
    """The "cpu" part of the facts."""
    return {
        "model": attempt(model, root),
        "present": attempt(_count, root, "/sys/devices/system/cpu/present"),
        "online": attempt(_count, root, "/sys/devices/system/cpu/online"),
        "dmi_threads": attempt(processor_threads, root),
        "hypervisor": attempt(hypervisor, root),
        "max_apic_id": attempt(max_apic_id, root),
    }


def model(root: str) -> str:
    """The model name of the first CPU.

    Raises:
        NotSupported: The architecture's /proc/cpuinfo names no model (Arm).
    """
    return _cpuinfo_values(root, "model name")[0]


def hypervisor(root: str) -> bool:
    """True inside a virtual machine: CPUID leaf 1 says so to every guest that is not hidden from.

    Raises:
        NotSupported: The architecture's /proc/cpuinfo has no flags (Arm).
    """
    return "hypervisor" in flags(root)


def flags(root: str) -> List[str]:
    """Feature flags of the first CPU.

    Raises:
        NotSupported: The architecture's /proc/cpuinfo has no flags (Arm).
    """
    return _cpuinfo_values(root, "flags")[0].split()


def max_apic_id(root: str) -> int:
    """Highest APIC id of a CPU that runs. Ids have gaps: 128 threads may well reach past 254.

    A CPU that did not start is not in /proc/cpuinfo; dmi_threads tells of those.

    Raises:
        NotSupported: The CPUs have no APIC (Arm).
        ValueError: An id is not a number.
    """
    return max(int(value) for value in _cpuinfo_values(root, "apicid"))


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


def _cpuinfo_values(root: str, name: str) -> List[str]:
    """The values of one field, one for each CPU that has it; at least one."""
    pairs = (line.partition(":") for line in read_text(root, "/proc/cpuinfo").splitlines())
    values = [value.strip() for key, separator, value in pairs if separator and key.strip() == name]
    if not values:
        raise NotSupported(f"/proc/cpuinfo has no {name!r} line on this architecture")
    return values
