"""Each GPU has joined the NVLink fabric, where its board has one."""

from __future__ import annotations

from collections.abc import Iterator

from nodeprep.checks._check import Check, Context
from nodeprep.checks._facts import each_gpu, gpus, latest
from nodeprep.model.facts import Fabric, Gpu
from nodeprep.model.reading import Unreadable
from nodeprep.model.result import CheckResult

# Fields of the health mask: shift, width, the values that are unhealthy, what they mean. A mask is
# not zero when healthy: 2 in a two-bit field means "no", 1 means "yes", 0 "not supported".
# Source: nvml.h, NVML_GPU_FABRIC_HEALTH_MASK_*.
_UNHEALTHY = (
    (0, 0x3, frozenset({1}), "degraded bandwidth"),
    (2, 0x3, frozenset({1}), "route recovery in progress"),
    (4, 0x3, frozenset({1}), "unhealthy route"),
    (6, 0x3, frozenset({1}), "access timeout recovery in progress"),
    (8, 0xF, frozenset(range(2, 16)), "incorrect configuration"),
)
# The driver's own summary of the above and of what the mask has no field for.
# Source: nvml.h, NVML_GPU_FABRIC_HEALTH_SUMMARY_*; 0 is "not supported", 1 healthy.
_SUMMARIES = {2: "the driver sums it up as unhealthy", 3: "the driver sums it up as of limited capacity"}
_FINE_SUMMARIES = (None, 0, 1)
SOURCE = "nvml.h: registration completed with NVML_SUCCESS, healthy"


def evaluate(context: Context) -> Iterator[CheckResult]:
    """One result a GPU. A PCIe card without a fabric is healthy; one left out by its peers is not."""
    has_fabric = context.spec.profile.has_fabric
    if has_fabric is False:
        yield CHECK.result("SKIPPED", "node", f"{context.spec.profile.title} has no NVLink fabric")
        return
    required = has_fabric or any(_state(gpu) != "not_supported" for gpu, _ in gpus(context, latest(context)))

    def judge(gpu: Gpu) -> CheckResult:
        return _judge(gpu, required)

    yield from each_gpu(CHECK, context, "fabric", judge)


def _state(gpu: Gpu) -> str:
    fabric = gpu.fabric
    return fabric.state if fabric.value is None else fabric.value.state


def _judge(gpu: Gpu, required: bool) -> CheckResult:
    address = gpu.pci_address
    if _state(gpu) == "not_supported":
        if not required:
            return CHECK.result("SKIPPED", address, f"the board of GPU {address} has no NVLink fabric")
        reason = f"GPU {address} knows no NVLink fabric although this node has one"
        return _result(False, address, reason, "not supported")
    fabric = gpu.fabric.require(f"the fabric state of GPU {address}")
    if fabric.state != "completed":
        waiting = fabric.state.replace("_", " ")
        return _result(
            False, address, f"GPU {address} has not joined the NVLink fabric: registration {waiting}", waiting
        )
    if fabric.status != 0:
        reason = f"GPU {address} could not join the NVLink fabric: NVML status {fabric.status}"
        return _result(False, address, reason, f"completed with status {fabric.status}")
    faults = _faults(address, fabric)
    if faults:
        reason = f"the NVLink fabric of GPU {address} is unhealthy: {', '.join(faults)}"
        return _result(False, address, reason, f"completed, {', '.join(faults)}")
    return _result(True, address, f"GPU {address} has joined the NVLink fabric", "completed")


def _faults(address: str, fabric: Fabric) -> list[str]:
    mask = fabric.health_mask or 0  # older drivers give none; the registration itself is then the answer
    faults = [name for shift, width, bad, name in _UNHEALTHY if (mask >> shift) & width in bad]
    summary = fabric.health_summary
    if summary in _SUMMARIES:
        faults.append(_SUMMARIES[summary])
    elif summary not in _FINE_SUMMARIES and not faults:
        raise Unreadable(f"the fabric health summary {summary} of GPU {address} is not known")
    return faults


def _result(good: bool, address: str, reason: str, measured: str) -> CheckResult:
    return CHECK.result(
        "PASS" if good else "FAIL", address, reason, measured=measured, limit="completed", source=SOURCE
    )


CHECK = Check(
    id="fabric",
    title="the NVLink fabric is complete where there is one",
    phase="static",
    evaluate=evaluate,
)
