"""No uncorrectable memory errors since the driver started, and few over the board's life."""

from __future__ import annotations

from collections.abc import Iterator

from nodeprep.checks._check import Check, Context
from nodeprep.checks._counters import growth
from nodeprep.checks._facts import each_gpu, gpus
from nodeprep.model.facts import Gpu
from nodeprep.model.result import CheckResult

# Since driver load: any is a fault. Source: Azure NHC (SRAM uncorrectable: any fails).
VOLATILE_LIMIT = 0
# Over the board's life. Source: Azure NHC, ml-engineering (SRAM aggregate above 4: replace). NVML's
# total counts DRAM as well, where a remapped row is a repair: on the strict side.
AGGREGATE_LIMIT = 4


def evaluate(context: Context) -> Iterator[CheckResult]:
    """One result a GPU, from the facts after the load where there are some."""
    before: dict[str, Gpu] = {}
    if context.after is not None:
        before = {gpu.pci_address: gpu for gpu, _ in gpus(context, "before")}

    def judge(gpu: Gpu) -> CheckResult:
        return _judge(gpu, before.get(gpu.pci_address))

    yield from each_gpu(CHECK, context, "ecc", judge)


def _judge(gpu: Gpu, before: Gpu | None) -> CheckResult:
    ecc, address = gpu.ecc, gpu.pci_address
    volatile = ecc.volatile_uncorrected.require(f"uncorrectable errors of GPU {address} since driver load")
    aggregate = ecc.aggregate_uncorrected.require(f"uncorrectable errors of GPU {address} over its life")
    exceeded = ecc.sram_threshold_exceeded.state != "not_supported" and ecc.sram_threshold_exceeded.require(
        f"the SRAM error threshold flag of GPU {address}"
    )
    measured, limit, source = volatile, VOLATILE_LIMIT, "Azure NHC: any since driver load fails"
    status = "FAIL"
    if exceeded:
        reason = f"GPU {address} has exceeded its SRAM error threshold: replace it"
        measured, limit, source = aggregate, AGGREGATE_LIMIT, "NVIDIA SRAM threshold flag (NVML)"
    elif volatile > VOLATILE_LIMIT:
        reason = f"GPU {address} had {volatile} uncorrectable memory errors since the driver was loaded"
    elif aggregate > AGGREGATE_LIMIT:
        reason = f"GPU {address} had {aggregate} uncorrectable memory errors over its life"
        measured, limit = aggregate, AGGREGATE_LIMIT
        source = "Azure NHC, ml-engineering: more than 4 over the board's life, replace"
    elif before is not None and (new := _new(before, gpu)):
        # The volatile count is zero all the same where the driver was reloaded in between.
        reason = f"GPU {address} had {new} uncorrectable memory errors during the load"
        measured = new
    else:
        status = "PASS"
        reason = (
            f"GPU {address} had no uncorrectable memory error since driver load, {aggregate} over its life"
        )
    return CHECK.result(
        "PASS" if status == "PASS" else "FAIL",
        address,
        reason,
        measured=measured,
        limit=limit,
        unit="errors",
        source=source,
    )


def _new(before: Gpu, after: Gpu) -> int:
    """Errors that came between the two looks, by the counter that a reload of the driver leaves alone."""
    what = f"the counter of uncorrectable errors of GPU {after.pci_address}"
    old, new = before.ecc, after.ecc
    over_life = growth(
        old.aggregate_uncorrected,
        new.aggregate_uncorrected,
        f"{what} over its life",
        "a history cannot shrink",
    )
    # Where the count began anew, what it held by then is lost: that is unreadable, never zero.
    return over_life or growth(
        old.volatile_uncorrected, new.volatile_uncorrected, f"{what} since driver load"
    )


CHECK = Check(
    id="ecc_uncorrected",
    title="no uncorrectable memory errors",
    phase="static",
    evaluate=evaluate,
    tolerates={
        "nvml/gpus/*/ecc/sram_threshold_exceeded": "parts before Ampere and older drivers have no such flag"
    },
)
