"""No memory row waits for its repair, failed to be repaired, or used up its spares."""

from __future__ import annotations

from collections.abc import Iterator

from nodeprep.checks._check import Check, Context
from nodeprep.checks._facts import each_gpu
from nodeprep.model.facts import Gpu
from nodeprep.model.result import CheckResult

SOURCE = "NVIDIA GPU memory error management; gpud"


def evaluate(context: Context) -> Iterator[CheckResult]:
    """One result a GPU, from the facts after the load where there are some."""
    yield from each_gpu(CHECK, context, "remap", _judge)


def _judge(gpu: Gpu) -> CheckResult:
    remap, address = gpu.remap, gpu.pci_address
    failure = remap.failure.require(f"the row remap failure flag of GPU {address}")
    pending = remap.pending.require(f"the pending row remap of GPU {address}")
    exhausted = remap.histogram.require(f"the row remapper histogram of GPU {address}").none
    repairs = [
        name
        for name, reading in (
            ("memory channel", remap.channel_repair_pending),
            ("TPC", remap.tpc_repair_pending),
        )
        if reading.state != "not_supported" and reading.require(f"the {name} repair status of GPU {address}")
    ]
    wrong: list[str] = []
    if failure:
        wrong.append("a row could not be remapped (replace the GPU)")
    if exhausted:
        wrong.append(f"{exhausted} memory banks have no spare row left (replace the GPU)")
    if pending:
        wrong.append("a row remap is pending (reset the GPU)")
    wrong += [f"a {name} repair is pending (reset the GPU)" for name in repairs]
    return CHECK.result(
        "FAIL" if wrong else "PASS",
        address,
        f"GPU {address}: {'; '.join(wrong)}"
        if wrong
        else f"GPU {address} has no failed or pending row remap and spare rows in every bank",
        measured=len(wrong),
        limit=0,
        unit="findings",
        source=SOURCE,
    )


CHECK = Check(
    id="row_remap",
    title="no row remap failed or pending",
    phase="static",
    evaluate=evaluate,
    tolerates={
        "nvml/gpus/*/remap/channel_repair_pending": "the repair status needs a newer driver",
        "nvml/gpus/*/remap/tpc_repair_pending": "the repair status needs a newer driver",
    },
)
