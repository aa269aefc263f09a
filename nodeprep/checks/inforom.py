"""The board's InfoROM is whole."""

from __future__ import annotations

from collections.abc import Iterator

from nodeprep.checks._check import Check, Context
from nodeprep.checks._facts import each_gpu
from nodeprep.model.facts import Gpu
from nodeprep.model.result import CheckResult


def evaluate(context: Context) -> Iterator[CheckResult]:
    """One result a GPU."""
    yield from each_gpu(CHECK, context, "inforom_valid", _judge)


def _judge(gpu: Gpu) -> CheckResult:
    address = gpu.pci_address
    # Twice told: NVML can neither validate an InfoROM nor name its version.
    if gpu.inforom_valid.state == "not_supported" and gpu.inforom_version.state == "not_supported":
        return CHECK.result("SKIPPED", address, f"GPU {address} has no InfoROM that NVML knows of")
    valid = gpu.inforom_valid.require(f"whether the InfoROM of GPU {address} is valid")
    return CHECK.result(
        "PASS" if valid else "FAIL",
        address,
        f"the InfoROM of GPU {address} is valid"
        if valid
        else f"the InfoROM of GPU {address} is corrupted: its ECC history and limits cannot be trusted",
        measured=valid,
        limit=True,
        source="NVML: nvmlDeviceValidateInforom, NVML_ERROR_CORRUPTED_INFOROM",
    )


CHECK = Check(
    id="inforom",
    title="the InfoROM is valid",
    phase="static",
    evaluate=evaluate,
)
