"""Host copies ran both ways beside the model: the load was the one that a certificate speaks of."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from nodeprep.checks._check import Check, Context
from nodeprep.checks._runs import each_run, result
from nodeprep.model.probe import GpuRun, Workload
from nodeprep.model.reading import Unreadable
from nodeprep.model.result import CheckResult

# Least rate of each direction while both run beside the model, of the lone rate in the same run. Source:
# measured on an H200 SXM (Gen5 x16), 2026-11-30: 50.8 GB/s each way at once beside the model, 55.3 alone
# (0.92); two of one host at once: 27.5 to device and 45.0 to host (0.50 and 0.81). A fifth leaves room for
# four GPUs behind one uplink; what it finds is a direction that did not run, which was at 0.02.
LEAST_FRACTION = 0.2
SOURCE = "nodeprep: a fifth of the lone rate of the same run; measured on an H200 SXM: 0.92 (see the page)"


def evaluate(context: Context) -> Iterator[CheckResult]:
    """One result a GPU. Never FAIL: a load that was none says nothing bad of the node, and nothing good."""
    workload = result(context).workload
    if workload.pcie_share == 0:
        yield CHECK.result(
            "SKIPPED", "node", f"the workload {workload.name} asks for no copies beside the model"
        )
        return
    yield from each_run(CHECK, context, "copies", partial(_judge, workload))


def _judge(workload: Workload, run: GpuRun) -> CheckResult:
    address, copies = run.pci_address, run.copies
    ways = [
        ("h2d", f"host to GPU {address}", copies.during_h2d_gbps, copies.alone_h2d_gbps, copies.bytes_h2d),
        ("d2h", f"GPU {address} to host", copies.during_d2h_gbps, copies.alone_d2h_gbps, copies.bytes_d2h),
    ]
    asked = [way[1:] for way in ways if workload.pcie_direction in ("both", way[0])]
    least = LEAST_FRACTION * workload.pcie_share
    rates: list[tuple[float, float, str]] = []
    for way, during, alone, moved in asked:
        rate = during.require(f"the copy rate {way} beside the model")
        lone = alone.require(f"the copy rate {way} alone")
        # Written so that a rate that is not a number does not pass either.
        if not (moved > 0 and lone > 0 and rate > 0 and rate >= least * lone):
            raise Unreadable(
                f"the load had no PCIe share in the direction {way}: {rate:.1f} of {lone:.1f} GB/s, "
                f"{moved / 1e9:.1f} GB copied"
            )
        rates.append((rate, lone, way))
    rate, lone, way = min(rates, key=lambda entry: entry[0] / entry[1])
    told = "both ways" if len(asked) > 1 else "as asked"
    return CHECK.result(
        "PASS",
        address,
        f"copies ran {told} beside the model, at least {rate / lone:.0%} of the lone rate ({way})",
        measured=round(rate, 2),
        limit=round(least * lone, 2),
        unit="GB/s",
        source=SOURCE,
    )


CHECK = Check(
    id="copy_load",
    title="host copies ran both ways beside the model",
    phase="load",
    evaluate=evaluate,
)
