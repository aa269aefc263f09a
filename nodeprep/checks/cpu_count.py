"""All CPUs that the machine has are online."""

from __future__ import annotations

from collections.abc import Iterator

from nodeprep.checks._check import Check, Context
from nodeprep.model.facts import Cpu
from nodeprep.model.result import CheckResult


def evaluate(context: Context) -> Iterator[CheckResult]:
    """One result on the node."""
    yield CHECK.on("node", "facts.before#/cpu", _judge, context.before.cpu)


def _judge(cpu: Cpu) -> CheckResult:
    online = cpu.online.require("the number of online CPUs")
    present = cpu.present.require("the number of present CPUs")
    wanted, source = present, "CPUs the kernel sees (/sys/devices/system/cpu/present)"
    if cpu.dmi_threads.state != "not_supported":
        installed = cpu.dmi_threads.require("the number of CPU threads in DMI")
        if installed > present:
            wanted, source = installed, "CPU threads that firmware counts (SMBIOS type 4)"
    missing = wanted - online
    advice = "look for iommu=off (without x2APIC, CPUs above 255 are lost), nosmt and maxcpus="
    return CHECK.result(
        "FAIL" if missing > 0 else "PASS",
        "node",
        f"{online} of {wanted} CPUs are online: {advice}" if missing > 0 else f"all {online} CPUs are online",
        measured=online,
        limit=wanted,
        unit="CPUs",
        source=source,
    )


CHECK = Check(
    id="cpu_count",
    title="all CPUs are online",
    phase="static",
    evaluate=evaluate,
    tolerates={"cpu/dmi_threads": "some virtual machines have no SMBIOS processor record"},
)
