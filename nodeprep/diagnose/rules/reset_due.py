"""A GPU waits for a reset since some earlier fault, while its counters say zero."""

from __future__ import annotations

from collections.abc import Iterator

from nodeprep.diagnose.evidence import Evidence
from nodeprep.diagnose.rule import Finding, Rule
from nodeprep.diagnose.rules._words import of, times, total


def explain(evidence: Evidence) -> Iterator[Finding]:
    """One finding a host."""
    for host in evidence.hosts:
        events = evidence.open("gpu.reset_required", "smi.reset_required", host=host)
        if not events:
            continue
        devices = {event.device for event in events if event.device}
        device = devices.pop() if len(devices) == 1 else ""
        failed = evidence.open(
            "cuda.devices_unavailable",
            "cuda.not_initialized",
            "cuda.unknown",
            "gsp.call_failed",
            "nccl.",
            host=host,
        )
        yield Finding(
            layer="driver",
            severity="error",
            device=device,
            summary=f"{of(device)} waits for a reset; programs fail until then",
            why=(
                f"Driver or nvidia-smi said {times(total(events))} that a reset is due "
                "(NV_ERR_RESET_REQUIRED, 0x62): an earlier "
                "fault has left a GPU that takes no work. Counters of today know nothing of it, so "
                "zeros prove nothing."
            ),
            events=(*events, *failed),
            action="reset_gpu",
            then=("reboot_node_if_reset_fails", "read_kernel_log"),
            root_event=events[0].kind,
            count=total(events),
        )


RULE = Rule(id="reset_due", rank=34, explain=explain)
