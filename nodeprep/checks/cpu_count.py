"""All CPUs that the machine has are online."""

from __future__ import annotations

from collections.abc import Iterator

from nodeprep.checks._check import Check, Context
from nodeprep.model.facts import NodeFacts
from nodeprep.model.result import CheckResult
from nodeprep.node.kernel_cmdline import Argument, parse

# Source: Linux Documentation/admin-guide/kernel-parameters.txt.
_REMAPPING = frozenset({"iommu=off", "amd_iommu=off", "intremap=off", "nox2apic"})
_OFF = frozenset({"nosmp", "nosmt", "maxcpus", "nr_cpus", "possible_cpus", "nolapic", "noapic"})


def evaluate(context: Context) -> Iterator[CheckResult]:
    """One result on the node."""
    yield CHECK.on("node", "facts.before#/cpu", _judge, context.before)


def _judge(document: NodeFacts) -> CheckResult:
    cpu = document.cpu
    online = cpu.online.require("the number of online CPUs")
    present = cpu.present.require("the number of present CPUs")
    wanted, source = present, "CPUs the kernel sees (/sys/devices/system/cpu/present)"
    if cpu.dmi_threads.state != "not_supported":
        installed = cpu.dmi_threads.require("the number of CPU threads in DMI")
        if installed > present:
            wanted, source = installed, "CPU threads that firmware counts (SMBIOS type 4)"
    missing = wanted - online
    return CHECK.result(
        "FAIL" if missing > 0 else "PASS",
        "node",
        f"{online} of {wanted} CPUs are online: {_advice(document)}"
        if missing > 0
        else f"all {online} CPUs are online",
        measured=online,
        limit=wanted,
        unit="CPUs",
        source=source,
    )


def _advice(document: NodeFacts) -> str:
    """Which arguments may have done it; only for the words."""
    given = [str(each) for each in parse(document.boot.cmdline.value or "") if _is_suspect(each)]
    if not given:
        return "no kernel argument explains it: look at the BIOS and at the kernel log"
    remapping = " (without interrupt remapping, CPUs with an APIC id above 254 do not start)"
    return f"the kernel was given {', '.join(given)}{remapping if _REMAPPING & set(given) else ''}"


def _is_suspect(argument: Argument) -> bool:
    return str(argument) in {"acpi=off", *_REMAPPING} or argument.key in _OFF


CHECK = Check(
    id="cpu_count",
    title="all CPUs are online",
    phase="static",
    evaluate=evaluate,
    tolerates={"cpu/dmi_threads": "some virtual machines have no SMBIOS processor record"},
)
