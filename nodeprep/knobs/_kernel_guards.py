"""Which kernel arguments a node must not be given, and why. Facts decide; what cannot be read is no consent.

Docs: docs/knobs/kernel_args.md, "Guards".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from nodeprep.model.facts import Cpu, KernelUse, NodeFacts
from nodeprep.model.reading import Reading
from nodeprep.node.kernel_cmdline import Argument
from nodeprep.node.trial_space import MIN_FREE_BYTES

Forbidden = tuple[Literal["refused", "unknown"], str]

# In xAPIC mode an APIC id has 8 bits, and 255 addresses all CPUs at once. Higher ids need x2APIC, which
# needs interrupt remapping: without it the kernel leaves x2APIC and starts no CPU above 254.
# Source: Intel SDM volume 3, "Local APIC"; arch/x86/kernel/apic/apic.c of Linux, try_to_enable_x2apic().
HIGHEST_XAPIC_ID = 254
_XAPIC_CPUS = HIGHEST_XAPIC_ID + 1

# Source: drivers/iommu/amd/init.c: interrupt remapping goes with the IOMMU. Intel keeps it with iommu=off
# (seen in QEMU), and loses it when VT-d is off in the BIOS too, which the same policy may ask for.
_NO_REMAPPING = frozenset({"iommu=off", "amd_iommu=off", "intremap=off", "nox2apic"})
NO_IOMMU = frozenset({"iommu=off", "amd_iommu=off", "intel_iommu=off"})
_NATIVE = "pcie_ports=native"

# Nobody needs these on a GPU server. Whoever does says so with an override.
# Source: Documentation/admin-guide/kernel-parameters.txt; linux-pci, 2019 (pci=noacpi).
_OPT_IN = {
    "pcie_aspm=force": "ASPM on devices that do not support it makes links fail; never set it",
    "pci=noacpi": (
        "host-bridge windows, interrupt routing, hot-plug and error reporting of a server come from ACPI"
    ),
    "pci=nommconf": "without extended config space there is no AER, no ACS and no SR-IOV",
    "pci=noaer": "PCIe errors would be hidden from the operating system",
    "pci=off": "no PCI device would be found, neither GPU nor disk nor network",
    "acpi=off": "a server without ACPI finds neither its CPUs nor its PCI root bridges",
    "nosmp": "one CPU only would run",
}
_OPT_IN_KEYS = {
    "maxcpus": "CPUs would stay off",
    "nr_cpus": "CPUs would stay off",
    "mem": "memory would stay unused",
    "init": "the system would start something else than its init",
    "rdinit": "the initramfs would start something else than its init",
}

# The kernel passes these on to user space, which reads them there.
# Source: systemd-udevd (biosdevname), plymouth (splash), cloud-init (ds).
_FOR_USER_SPACE = frozenset({"biosdevname", "splash", "ds"})

# Source: drivers/acpi/osl.c of Linux, acpi_os_get_root_pointer(): LOCKDOWN_ACPI_TABLES, of level integrity.
_IGNORED_IN_LOCKDOWN = frozenset({"acpi_rsdp"})


def forbidden(argument: Argument, facts: NodeFacts, *, present: bool) -> Forbidden | None:
    """Why an argument must not be set on this node; None when nothing forbids it.

    Args:
        argument: What the policy asks for.
        facts: The node.
        present: The kernel that runs was given it. What it would have cost is then to be seen.

    Returns:
        "refused" and the reasons, or "unknown" and what could not be read.
    """
    found = list(_found(argument, facts, present=present))
    refused = [reason for status, reason in found if status == "refused"]
    if refused:
        return "refused", "; ".join(refused)
    return ("unknown", "; ".join(reason for _, reason in found)) if found else None


def write_obstacle(facts: NodeFacts) -> Forbidden | None:
    """Why the boot loader must not be written at all; None when there is no reason."""
    free = facts.boot_loader.boot_free_bytes
    if free.value is None:
        return _unknown("whether /boot has room", free)
    if free.value >= MIN_FREE_BYTES:
        return None
    return _refused(
        f"/boot has {free.value // 1024} KiB left, {MIN_FREE_BYTES // 1024} needed: a boot loader "
        "configuration that is cut short does not boot; remove old kernels first"
    )


def _refused(reason: str) -> Forbidden:
    return "refused", reason


def _unknown(what: str, reading: Reading[Any]) -> Forbidden:
    return "unknown", f"{what} cannot be told: {reading.detail}"


def _found(argument: Argument, facts: NodeFacts, *, present: bool) -> Iterator[Forbidden]:
    name = str(argument)
    against = _OPT_IN.get(name) or _OPT_IN_KEYS.get(argument.key)
    if against:
        yield _refused(f"{against}; only by an explicit override")
    if name in _NO_REMAPPING:
        yield from _lost_cpus(name, facts.cpu, present=present)
    if name in NO_IOMMU and not present:
        yield from _iommu_in_use(facts.kernel_use)
    if name == _NATIVE:
        yield from _taken_from_firmware(facts.aer_ownership.firmware_first)
    level = facts.kernel_use.lockdown.value
    if argument.key in _IGNORED_IN_LOCKDOWN and level not in (None, "none"):
        yield _refused(f"the kernel is locked down, level {level}, and ignores {argument.key}")
    if present and argument.key not in _FOR_USER_SPACE:
        yield from _not_known(name, facts)


def _lost_cpus(name: str, cpu: Cpu, *, present: bool) -> Iterator[Forbidden]:
    needed = [("the number of CPUs", cpu.present), ("the highest APIC id", cpu.max_apic_id)]
    if present:
        # CPUs that this argument has cost already are known to firmware alone.
        needed.append(("the number of CPU threads in DMI", cpu.dmi_threads))
    for what, reading in needed:
        if reading.state == "error":
            yield _unknown(f"whether {name} would lose CPUs, for want of {what},", reading)
    most = max((each.value for each in (cpu.present, cpu.online, cpu.dmi_threads) if each.value), default=0)
    if present and cpu.online.value is not None and cpu.online.value >= most:
        return
    highest = cpu.max_apic_id.value or 0
    seen = [f"{most} logical CPUs"] if most > _XAPIC_CPUS else []
    seen += [f"APIC ids up to {highest}"] if highest > HIGHEST_XAPIC_ID else []
    if seen:
        yield _refused(
            f"{' and '.join(seen)}: without interrupt remapping CPUs with an APIC id above "
            f"{HIGHEST_XAPIC_ID} do not start; use iommu=pt"
        )


def _iommu_in_use(use: KernelUse) -> Iterator[Forbidden]:
    yield from _used("VFIO", "bound to VFIO, for virtual machines", use.vfio_devices)
    yield from _used("SR-IOV", "enabled as SR-IOV virtual functions", use.virtual_functions)
    if use.confidential.state == "error":
        yield _unknown("whether confidential computing is in use", use.confidential)
    elif use.confidential.value:
        yield _refused("confidential computing (SEV-SNP or TDX) is in use, and needs the IOMMU")


def _used(name: str, how: str, devices: Reading[tuple[str, ...]]) -> Iterator[Forbidden]:
    if devices.state == "error":
        yield _unknown(f"whether {name} is in use", devices)
    elif devices.value:
        shown = ", ".join(devices.value[:3]) + (", ..." if len(devices.value) > 3 else "")
        yield _refused(f"PCI devices are {how}, and need the IOMMU: {len(devices.value)} ({shown})")


def _taken_from_firmware(firmware_first: Reading[bool]) -> Iterator[Forbidden]:
    if firmware_first.state == "error":
        yield _unknown("whether firmware handles PCIe errors first (APEI HEST)", firmware_first)
    elif firmware_first.value:
        yield _refused(
            "firmware handles PCIe errors first (APEI HEST), and the BMC's event log would lose them; "
            "ask the vendor before you take them away"
        )


def _not_known(name: str, facts: NodeFacts) -> Iterator[Forbidden]:
    # An unreadable log forbids nothing: whether there is an effect is for the checks.
    if name in (facts.kernel_use.unknown_arguments.value or ()):
        kernel = facts.boot.kernel_release.value or "of unknown release"
        yield _refused(
            f"the running kernel ({kernel}) was given {name} and said that it does not know it: it has no "
            "effect; take it out, or say in an override who reads it"
        )
