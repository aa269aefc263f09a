"""The driver asks for no recovery action (reset, reboot, drain) on any GPU."""

from __future__ import annotations

from collections.abc import Iterator

from nodeprep.checks._check import Check, Context
from nodeprep.checks._facts import each_gpu
from nodeprep.model.facts import Gpu
from nodeprep.model.result import CheckResult

# Source: nvml.h, nvmlDeviceGpuRecoveryAction_t.
_ACTIONS = {
    0: "none",
    1: "GPU reset",
    2: "node reboot",
    3: "drain of peer-to-peer traffic",
    4: "drain and GPU reset",
    5: "recovery of the IMEX domain",
    6: "bus reset",
    7: "system reboot",
}


def evaluate(context: Context) -> Iterator[CheckResult]:
    """One result a GPU, from the facts after the load where there are some."""
    yield from each_gpu(CHECK, context, "recovery_action", _judge)


def _judge(gpu: Gpu) -> CheckResult:
    action = gpu.recovery_action.require(f"the recovery action of GPU {gpu.pci_address}")
    name = _ACTIONS.get(action, f"an action unknown to this version ({action})")
    return CHECK.result(
        "FAIL" if action else "PASS",
        gpu.pci_address,
        f"the driver asks for this on GPU {gpu.pci_address}: {name}"
        if action
        else f"the driver asks for nothing on GPU {gpu.pci_address}",
        measured=name,
        limit="none",
        source="NVML field 230 (GPU recovery action)",
    )


CHECK = Check(
    id="recovery_action",
    title="no recovery action is pending",
    phase="static",
    evaluate=evaluate,
)
