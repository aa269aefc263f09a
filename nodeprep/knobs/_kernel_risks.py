"""What kernel arguments do besides what they are wanted for, and the guards that forbid some.

Source: Linux Documentation/admin-guide/kernel-parameters.txt and linux-pci; x2APIC loss: LKML,
March 2026 (a machine of 448 CPUs came up with 224); AER blindness: seen on a real kernel in QEMU.
"""

from __future__ import annotations

from nodeprep.model.facts import NodeFacts
from nodeprep.model.kernel_cmdline import Argument, parse, parse_word
from nodeprep.model.plan import ChangeStatus
from nodeprep.model.spec import NodeSpec

# An APIC id above this needs x2APIC, and x2APIC needs interrupt remapping.
_XAPIC_CPUS = 255

_NATIVE = Argument("pcie_ports", "native")

_ALWAYS: dict[str, tuple[str, ...]] = {
    "pcie_aspm=off": (
        "it leaves ASPM as the firmware set it: the check aspm_off reads both ends of each link",
    ),
    "pcie_aspm=force": ("it turns ASPM on for devices that said they cannot",),
    "pcie_ports=native": ("where firmware handles errors first it takes them from the BMC's event log",),
    "pci=noacpi": (
        "harmful on servers: host-bridge windows, interrupt routing, hot-plug and error reporting need ACPI",
    ),
    "pci=noaer": ("it hides PCIe errors from the operating system",),
    "pci=nommconf": ("extended config space is lost, and with it AER, ACS and SR-IOV",),
    "mitigations=off": ("it trades the processor's security fixes for speed",),
}
_IOMMU_OFF = (
    "VFIO, SR-IOV virtual functions and confidential computing stop working",
    "iommu=pt costs nearly as little and keeps interrupt remapping",
)
_REMAPPING = frozenset({"iommu=off", "amd_iommu=off", "intremap=off", "nox2apic"})
_NO_IOMMU = frozenset({"iommu=off", "amd_iommu=off", "intel_iommu=off"})


def risks_of(argument: Argument, spec: NodeSpec, facts: NodeFacts) -> tuple[str, ...]:
    """What else happens when an argument is set on this node."""
    name = str(argument)
    risks = _ALWAYS.get(name, ())
    if name in _NO_IOMMU:
        risks += _IOMMU_OFF
    if name == "pcie_aspm=off":
        risks += _blindness(spec, facts)
    return risks


def guard(argument: Argument, facts: NodeFacts, *, present: bool) -> tuple[ChangeStatus, str] | None:
    """The status and reason of an argument this node must not be given; None when nothing forbids it."""
    name = str(argument)
    if name == "pcie_aspm=force":
        return "refused", "ASPM on devices that do not support it makes links fail; never set it"
    if name in _REMAPPING:
        return _cpu_guard(name, facts, present=present)
    return None


def _cpu_guard(name: str, facts: NodeFacts, *, present: bool) -> tuple[ChangeStatus, str] | None:
    cpu = facts.cpu
    counts = [
        reading.value for reading in (cpu.present, cpu.online, cpu.dmi_threads) if reading.value is not None
    ]
    if cpu.present.value is None:
        return "unknown", f"whether {name} would lose CPUs cannot be told: {cpu.present.detail}"
    most = max(counts)
    online = cpu.online.value
    if present and online is not None and online >= most:
        return None
    if most > _XAPIC_CPUS:
        return "refused", (
            f"{most} logical CPUs: without interrupt remapping those with an APIC id above {_XAPIC_CPUS} "
            "do not start; use iommu=pt"
        )
    return None


def _blindness(spec: NodeSpec, facts: NodeFacts) -> tuple[str, ...]:
    """With pcie_aspm=off the kernel does not ask firmware for AER either; its counters read 0 for ever."""
    asked = any(_NATIVE in parse_word(word) for word in spec.policy.kernel_args.present)
    there = _NATIVE in parse(facts.boot.cmdline.value or "")
    if asked or there:
        return ()
    if facts.aer_ownership.firmware_first.value:
        return ("AER stays with the firmware: PCIe errors show in the BMC's event log only",)
    return (
        "it blinds AER: the kernel then leaves error reporting to the firmware and its counters read 0 "
        "for ever; add pcie_ports=native, or use pcie_aspm.policy=performance and the BIOS setting instead",
    )
