"""NVML did not answer a live node's questions, and nothing else says why."""

from __future__ import annotations

from collections.abc import Iterator

from nodeprep.diagnose.evidence import Evidence
from nodeprep.diagnose.rule import Finding, Rule


def explain(evidence: Evidence) -> Iterator[Finding]:
    """One finding a host."""
    for host in evidence.hosts:
        events = evidence.open("nvml.failed", host=host)
        if events:
            yield Finding(
                layer="driver",
                severity="error",
                summary="NVML could not list the GPUs",
                why="Without the list no counter of a GPU was read: their state is unknown, not good. A "
                "driver that is not loaded, a library of another version or a GPU that cannot be opened "
                "does this.",
                events=tuple(events),
                action="run_diagnostics",
                then=("check_driver_and_gpu_count", "read_kernel_log", "reboot_node"),
            )


RULE = Rule(id="nvml_failed", rank=88, explain=explain)
