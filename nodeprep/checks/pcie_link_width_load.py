"""No GPU's link lost lanes while it was under load."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from nodeprep.checks._check import Check, Context
from nodeprep.checks._facts import gpus
from nodeprep.checks._runs import each_run, telemetry
from nodeprep.model.facts import Gpu
from nodeprep.model.probe import GpuRun
from nodeprep.model.reading import Unreadable
from nodeprep.model.result import CheckResult


def evaluate(context: Context) -> Iterator[CheckResult]:
    """One result a GPU: the least width of any sample against the wanted one."""
    known = {gpu.pci_address: gpu for gpu, _ in gpus(context, "before")}
    yield from each_run(CHECK, context, "telemetry/link_width_lanes", partial(_judge, context, known))


def _judge(context: Context, known: dict[str, Gpu], run: GpuRun) -> CheckResult:
    address = run.pci_address
    seen = telemetry(run).link_width_lanes.require(f"the link width of GPU {address} under load")
    measured = int(seen.min)
    wanted, source = _wanted(context, known.get(address), address)
    if measured >= wanted:
        reason = f"GPU {address} stayed at x{measured} under load"
    elif seen.max < wanted:
        reason = f"GPU {address} trained to x{measured} under load, x{wanted} wanted"
    else:
        reason = f"GPU {address} dropped to x{measured} under load, x{wanted} wanted (at best x{seen.max:g})"
    return CHECK.result(
        "PASS" if measured >= wanted else "FAIL",
        address,
        reason,
        measured=measured,
        limit=wanted,
        unit="lanes",
        source=source,
    )


def _wanted(context: Context, gpu: Gpu | None, address: str) -> tuple[int, str]:
    if context.spec.pcie_width_lanes is not None:
        return int(context.spec.pcie_width_lanes.value), context.spec.pcie_width_lanes.source
    if gpu is None:
        raise Unreadable(f"no width is known for GPU {address}: NVML did not list it before the load")
    return (
        gpu.link.max_width_lanes.require(f"the widest link of GPU {address}"),
        "what GPU and system allow together (NVML)",
    )


CHECK = Check(
    id="pcie_link_width_load",
    title="PCIe links keep all lanes under load",
    phase="load",
    evaluate=evaluate,
    explains=("copy_bandwidth",),
)
