"""What kernel arguments do besides what they are wanted for, and who answers for one that is forbidden.

Source: Linux Documentation/admin-guide/kernel-parameters.txt and linux-pci; x2APIC loss: LKML,
March 2026 (a machine of 448 CPUs came up with 224); AER blindness: seen on a real kernel in QEMU.
"""

from __future__ import annotations

from nodeprep.knobs._kernel_guards import NO_IOMMU, Forbidden, forbidden
from nodeprep.model.facts import NodeFacts
from nodeprep.model.policy import Override
from nodeprep.model.spec import NodeSpec
from nodeprep.node.kernel_cmdline import Argument, parse, parse_word

_ASPM_OFF = Argument("pcie_aspm", "off")
_NATIVE = Argument("pcie_ports", "native")
_PASSTHROUGH = frozenset({"iommu=pt", "iommu.passthrough=1"})

_ALWAYS: dict[str, tuple[str, ...]] = {
    "pcie_aspm=off": (
        "it leaves ASPM as the firmware set it: the check aspm_off reads both ends of each link",
    ),
    "pcie_aspm=force": ("it turns ASPM on for devices that said they cannot",),
    "pcie_ports=native": (
        "where firmware handles errors first it takes them from the BMC's event log",
        "it takes hot-plug and DPC as well, without asking firmware",
    ),
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


def risks_of(argument: Argument, spec: NodeSpec, facts: NodeFacts) -> tuple[str, ...]:
    """What else happens when an argument is set on this node."""
    name = str(argument)
    risks = _ALWAYS.get(name, ())
    if name in NO_IOMMU:
        risks += _IOMMU_OFF
    if name in _PASSTHROUGH and facts.kernel_use.confidential.value:
        # Source: drivers/iommu/amd/init.c, iommu_snp_enable(): "configured in passthrough mode".
        risks += ("SEV-SNP guests do not start with a passthrough IOMMU",)
    if name == "pcie_aspm=off":
        risks += _blindness(spec, facts)
    return risks + _answered_for(argument, spec, facts)


def removal_risks(argument: Argument, spec: NodeSpec, facts: NodeFacts) -> tuple[str, ...]:
    """What else happens when an argument is taken away from this node."""
    policy = spec.policy.kernel_args
    asked = any(_ASPM_OFF in parse_word(word) for word in (*policy.present, *policy.replace))
    if asked and _NATIVE.matches(argument) and _NATIVE in parse(facts.boot.cmdline.value or ""):
        return _blindness(spec, facts)
    return ()


def next_boot_risks(facts: NodeFacts) -> tuple[str, ...]:
    """What the next boot changes besides any argument."""
    running, default = facts.boot.kernel_release, facts.boot_loader.default_kernel
    if running.value is None or default.value is None:
        detail = running.detail if running.value is None else default.detail
        return (f"which kernel the next boot starts cannot be told: {detail}",)
    if running.value == default.value:
        return ()
    return (
        f"the next boot also changes the kernel, from {running.value} to {default.value}: what goes wrong "
        "then need not be the argument's fault; reboot first",
    )


def guard(argument: Argument, spec: NodeSpec, facts: NodeFacts, *, present: bool) -> Forbidden | None:
    """The status and reason of an argument this node must not be given; None when it may be.

    It may be when nothing forbids it, and when somebody answers for it (kernel_args.override).
    """
    return None if _override(argument, spec) else forbidden(argument, facts, present=present)


def _override(argument: Argument, spec: NodeSpec) -> Override | None:
    overrides = spec.policy.kernel_args.override
    return next((each for each in overrides if argument in parse_word(each.argument)), None)


def _answered_for(argument: Argument, spec: NodeSpec, facts: NodeFacts) -> tuple[str, ...]:
    override = _override(argument, spec)
    if override is None:
        return ()
    against = forbidden(argument, facts, present=argument in parse(facts.boot.cmdline.value or ""))
    if against is None:
        return ()
    return (f"against the guard, {override.owner} answers for it ({override.why}): {against[1]}",)


def _blindness(spec: NodeSpec, facts: NodeFacts) -> tuple[str, ...]:
    """With pcie_aspm=off the kernel does not ask firmware for AER either; its counters read 0 for ever."""
    policy = spec.policy.kernel_args
    there = _NATIVE in parse(facts.boot.cmdline.value or "")
    asked = any(_NATIVE in parse_word(word) for word in (*policy.present, *policy.replace))
    goes = any(_NATIVE.matches(each) for word in policy.absent for each in parse_word(word))
    # Asked for and forbidden here, it will not come.
    comes = asked and guard(_NATIVE, spec, facts, present=there) is None
    if comes or (there and not goes):
        return ()
    first = facts.aer_ownership.firmware_first
    if first.value:
        return ("AER stays with the firmware: PCIe errors show in the BMC's event log only",)
    unread = f"; whether firmware then handles them is unknown: {first.detail}" if first.detail else ""
    return (
        "it blinds AER: the kernel then leaves error reporting to the firmware, its counters read 0 for "
        f"ever, and this node cannot be certified{unread}; add pcie_ports=native, or use "
        "pcie_aspm.policy=performance and the BIOS setting instead",
    )
