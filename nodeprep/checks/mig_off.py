"""MIG is off: what is certified is the whole GPU."""

from __future__ import annotations

from collections.abc import Iterator

from nodeprep.checks._check import Check, Context
from nodeprep.checks._facts import each_gpu
from nodeprep.model.facts import Gpu
from nodeprep.model.result import CheckResult


def evaluate(context: Context) -> Iterator[CheckResult]:
    """One result a GPU."""
    yield from each_gpu(CHECK, context, "mig_enabled", _judge)


def _judge(gpu: Gpu) -> CheckResult:
    address = gpu.pci_address
    if gpu.mig_enabled.state == "not_supported" and gpu.mig_pending.state == "not_supported":
        return CHECK.result("SKIPPED", address, f"GPU {address} has no MIG")
    now = gpu.mig_enabled.require(f"the MIG mode of GPU {address}")
    later = gpu.mig_pending.require(f"the pending MIG mode of GPU {address}")
    if now:
        reason = f"MIG of GPU {address} is on: a slice cannot be loaded like a GPU, and counters are hidden"
    elif later:
        reason = f"MIG of GPU {address} will be on after the next reset"
    else:
        reason = f"MIG of GPU {address} is off"
    return CHECK.result(
        "FAIL" if now or later else "PASS",
        address,
        reason,
        measured=f"now {'on' if now else 'off'}, pending {'on' if later else 'off'}",
        limit="now off, pending off",
        source="nodeprep certifies whole GPUs",
    )


CHECK = Check(
    id="mig_off",
    title="MIG is off",
    phase="static",
    evaluate=evaluate,
)
