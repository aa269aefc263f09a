"""A batch system counts fewer GPUs on a node than its configuration promises."""

from __future__ import annotations

from collections.abc import Iterator

from nodeprep.diagnose.event import Event
from nodeprep.diagnose.evidence import Evidence
from nodeprep.diagnose.rule import Finding, Rule
from nodeprep.diagnose.rules._words import plural

# What makes a node count fewer, and has a finding of its own. That the driver was loaded is in every log.
_REASONS = (
    "xid.79", "gpu.fallen_off_bus", "gpu.fallen_off_bus_noted", "gpu.lost_status", "gpu.init_failed",
    "gpu.init_failed_noted", "gpu.probe_failed", "gpu.not_probed", "gpu.none_found", "gpu.bar_missing",
    "gpu.removed_in_use", "gpu.held_for_guests", "driver.api_mismatch", "driver.version_mismatch",
    "driver.key_rejected", "driver.wrong_kernel", "driver.needs_open_module", "driver.gpu_unsupported",
    "driver.nouveau_conflict", "nvml.gpu_lost", "nvml.no_handle",
)  # fmt: skip


def explain(evidence: Evidence) -> Iterator[Finding]:
    """One finding a node, where nothing else tells why."""
    for host in evidence.hosts:
        events = evidence.open("slurm.fewer_gpus", host=host)
        missing = evidence.open("slurm.no_device_file", host=host)
        if not events and not missing:
            continue
        known = bool(evidence.seen(*_REASONS, host=host))
        yield Finding(
            layer="driver" if missing or _none(events) else "config",
            severity="info" if known else "error",
            summary=_summary(events),
            why=(
                "The batch system only counts; what it misses is told elsewhere in this log."
                if known
                else "Nothing here tells why: a GPU that is gone, a driver that is not loaded, or MIG slices "
                "that were changed since gres.conf was written look the same from there."
            ),
            events=(*events, *missing),
            action="observe" if known else "run_diagnostics",
            then=("check_driver_and_gpu_count", "read_kernel_log", "compare_gres_with_the_node"),
        )


def _none(events: list[Event]) -> bool:
    return bool(events) and events[-1].data["have"] == 0


def _summary(events: list[Event]) -> str:
    if not events:
        return "Slurm finds no device file of a GPU on its node"
    data = events[-1].data
    return f"Slurm counts {plural(data['have'], 'GPU')} on its node where {data['want']} are configured"


RULE = Rule(id="scheduler_misses_gpus", rank=87, explain=explain)
