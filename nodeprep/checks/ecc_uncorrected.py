"""No uncorrectable memory errors since the driver started, and few over the board's life."""

from __future__ import annotations

from collections.abc import Iterator

from nodeprep.checks._check import Check, Context
from nodeprep.checks._facts import each_gpu
from nodeprep.model.facts import Gpu
from nodeprep.model.result import CheckResult

# Since driver load: any is a fault. Source: Azure NHC (SRAM uncorrectable: any fails).
VOLATILE_LIMIT = 0
# Over the board's life. Source: Azure NHC, ml-engineering (SRAM aggregate above 4: replace). NVML's
# total counts DRAM as well, where a remapped row is a repair: on the strict side.
AGGREGATE_LIMIT = 4


def evaluate(context: Context) -> Iterator[CheckResult]:
    """One result a GPU, from the facts after the load where there are some."""
    yield from each_gpu(CHECK, context, "ecc", _judge)


def _judge(gpu: Gpu) -> CheckResult:
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


CHECK = Check(
    id="ecc_uncorrected",
    title="no uncorrectable memory errors",
    phase="static",
    evaluate=evaluate,
    tolerates={
        "nvml/gpus/*/ecc/sram_threshold_exceeded": "parts before Ampere and older drivers have no such flag"
    },
)
