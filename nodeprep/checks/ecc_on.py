"""ECC is on now, and stays on with the next reset."""

from __future__ import annotations

from collections.abc import Iterator

from nodeprep.checks._check import Check, Context
from nodeprep.checks._facts import each_gpu
from nodeprep.model.facts import Gpu
from nodeprep.model.result import CheckResult


def evaluate(context: Context) -> Iterator[CheckResult]:
    """One result a GPU."""
    if not context.spec.policy.gpu.ecc:
        yield CHECK.result("SKIPPED", "node", "the policy does not ask for ECC")
        return
    yield from each_gpu(CHECK, context, "ecc", _judge)


def _judge(gpu: Gpu) -> CheckResult:
    now = gpu.ecc.enabled.require(f"the ECC mode of GPU {gpu.pci_address}")
    later = gpu.ecc.pending_enabled.require(f"the pending ECC mode of GPU {gpu.pci_address}")
    if now and later:
        reason = f"ECC of GPU {gpu.pci_address} is on"
    elif now:
        reason = f"ECC of GPU {gpu.pci_address} is on but will be off after the next reset"
    else:
        reason = f"ECC of GPU {gpu.pci_address} is off" + (" until the next reset" if later else "")
    return CHECK.result(
        "PASS" if now and later else "FAIL",
        gpu.pci_address,
        reason,
        measured=f"now {'on' if now else 'off'}, pending {'on' if later else 'off'}",
        limit="now on, pending on",
        source="policy gpu.ecc",
    )


CHECK = Check(
    id="ecc_on",
    title="ECC is on",
    phase="static",
    evaluate=evaluate,
)
