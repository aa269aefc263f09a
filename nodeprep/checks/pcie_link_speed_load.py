"""Every GPU's link runs at the wanted PCIe generation while copies load it."""

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
    """One result a GPU. Judged under load only: an idle GPU drops to Gen1 and is healthy."""
    known = {gpu.pci_address: gpu for gpu, _ in gpus(context, "before")}
    yield from each_run(CHECK, context, "telemetry/link_gen", partial(_judge, context, known))


def _judge(context: Context, known: dict[str, Gpu], run: GpuRun) -> CheckResult:
    address = run.pci_address
    seen = telemetry(run).link_gen.require(f"the link generation of GPU {address} under load")
    wanted, source = _wanted(context, known.get(address), address)
    lowest, highest = int(seen.min), int(seen.max)
    pinned = context.spec.policy.pcie_link.gen is not None
    if lowest < wanted:
        reason = f"GPU {address} ran at Gen{lowest} under load, Gen{wanted} wanted (median {seen.median:g})"
        measured, good = lowest, False
    elif pinned and highest > wanted:
        reason = f"GPU {address} ran at Gen{highest} under load: the pin to Gen{wanted} is not in effect"
        measured, good = highest, False
    else:
        reason = f"GPU {address} ran at Gen{lowest} in every sample under load"
        measured, good = lowest, True
    return CHECK.result(
        "PASS" if good else "FAIL",
        address,
        reason,
        measured=measured,
        limit=wanted,
        unit="PCIe generation",
        source=source,
    )


def _wanted(context: Context, gpu: Gpu | None, address: str) -> tuple[int, str]:
    if context.spec.pcie_gen is not None:
        return int(context.spec.pcie_gen.value), context.spec.pcie_gen.source
    if gpu is None:
        raise Unreadable(f"no generation is known for GPU {address}: NVML did not list it before the load")
    return (
        gpu.link.max_gen.require(f"the highest link generation of GPU {address}"),
        "what GPU and system allow together (NVML)",
    )


CHECK = Check(
    id="pcie_link_speed_load",
    title="PCIe links run at the wanted generation under load",
    phase="load",
    evaluate=evaluate,
    explains=("copy_bandwidth",),
)
