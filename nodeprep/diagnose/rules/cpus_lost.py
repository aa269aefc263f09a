"""CPUs did not start, since with the IOMMU went interrupt remapping, and with that x2APIC."""

from __future__ import annotations

from collections.abc import Iterator

from nodeprep.diagnose.evidence import Evidence
from nodeprep.diagnose.rule import Finding, Rule
from nodeprep.diagnose.rules._words import listed, total

_OFF = ("amd_iommu=off", "iommu=off", "intremap=off", "nox2apic", "intel_iommu=off", "noapic")


def explain(evidence: Evidence) -> Iterator[Finding]:
    """One finding a host."""
    for host in evidence.hosts:
        absent = evidence.open("cpu.not_started", host=host)
        if not absent:
            continue
        x2apic = evidence.open("cpu.x2apic_off", host=host)
        booted = evidence.seen("boot.cmdline", host=host)
        arguments = [word for word in (booted[-1].data["args"] if booted else ()) if word in _OFF]
        counted = evidence.seen("cpu.count", host=host)
        have = int(counted[-1].data["cpus"]) if counted else 0
        threads = sum(int(event.data["threads"]) for event in evidence.seen("cpu.socket_threads", host=host))
        count = total(absent)
        of_all = (
            f", {have} of {threads} are left" if have and threads else f", {have} are left" if have else ""
        )
        cause = (
            f"{listed(arguments)} turns interrupt remapping off as well; without it x2APIC cannot "
            "be used, and CPUs with an "
            "APIC id above 254 cannot start."
            if arguments
            else "x2APIC is off, and CPUs with an APIC id above 254 cannot start without it."
        )
        yield Finding(
            layer="config",
            severity="error",
            summary=f"{count} CPUs did not start{of_all}" + (f": {listed(arguments)}" if arguments else ""),
            why=f"{cause} The CPUs are fine.",
            events=(*booted[-1:], *x2apic, *absent, *counted[-1:]),
            action="fix_config",
            then=("remove_argument", "use_iommu_pt", "compare_cpu_count_after_reboot"),
            root_event="boot.cmdline" if arguments else "cpu.not_started",
            count=1,
        )


RULE = Rule(id="cpus_lost", rank=65, explain=explain)
