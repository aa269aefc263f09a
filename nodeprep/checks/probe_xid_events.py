"""The driver told of no Xid while the probe ran."""

from __future__ import annotations

from collections.abc import Iterator

from nodeprep.checks._check import Check, Context
from nodeprep.checks._runs import each_run
from nodeprep.model.probe import GpuRun
from nodeprep.model.reading import Unreadable
from nodeprep.model.result import CheckResult

SOURCE = "NVIDIA NVML event types: critical Xid, uncorrectable ECC, poison, lost GPU, recovery action"
_SHOWN = 3


def evaluate(context: Context) -> Iterator[CheckResult]:
    """One result a GPU. The kernel log is another witness (no_xid); this one knows the second."""
    yield from each_run(CHECK, context, "xid_events", _judge)


def _judge(run: GpuRun) -> CheckResult:
    address = run.pci_address
    if run.xid_events.state == "not_supported":
        # Virtual GPUs and old drivers; the kernel log is read in any case.
        return CHECK.result("SKIPPED", address, f"NVML tells of no events here: {run.xid_events.detail}")
    events = run.xid_events.require(f"what NVML told of GPU {address}")
    xids = [event for event in events if event.xid is not None]
    if events and not xids:
        kinds = ", ".join(sorted({event.kind for event in events}))
        raise Unreadable(f"NVML told of events without an Xid on GPU {address} (types {kinds})")
    told = ", ".join(f"Xid {event.xid} at {event.t_s:.1f} s" for event in xids[:_SHOWN])
    return CHECK.result(
        "FAIL" if xids else "PASS",
        address,
        f"GPU {address} raised {told}" if xids else f"GPU {address} raised no Xid while NVML was listened to",
        measured=len(xids),
        limit=0,
        unit="Xids",
        source=SOURCE,
    )


CHECK = Check(
    id="probe_xid_events",
    title="NVML told of no Xid during the load",
    phase="load",
    evaluate=evaluate,
    explains=("probe_completed",),
    tolerates={
        "gpus/*/xid_events": "virtual GPUs and old drivers tell of no events; no_xid reads the kernel log"
    },
)
