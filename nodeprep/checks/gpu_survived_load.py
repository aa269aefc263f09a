"""The same GPUs are there after the load, in the same boot."""

from __future__ import annotations

from collections.abc import Iterator

from nodeprep.checks._check import Check, Context
from nodeprep.checks._facts import gpus, require_same_boot
from nodeprep.checks._hops import gpu_paths
from nodeprep.model.facts import Gpu
from nodeprep.model.result import CheckResult


def evaluate(context: Context) -> Iterator[CheckResult]:
    """One result for each GPU that was there before the load."""
    require_same_boot(context)
    on_pci = {path.gpu for path, _ in gpu_paths(context, "after")}
    after = {gpu.pci_address: gpu for gpu, _ in gpus(context, "after")}
    for gpu, where in gpus(context, "before"):
        yield CHECK.on(
            gpu.pci_address,
            f"{where}/uuid",
            _judge,
            gpu,
            after.get(gpu.pci_address),
            gpu.pci_address in on_pci,
        )


def _judge(before: Gpu, after: Gpu | None, on_pci: bool) -> CheckResult:
    address = before.pci_address
    uuid = before.uuid.require(f"the UUID of GPU {address} before the load")
    if after is None:
        place = "NVML no longer lists it" if on_pci else "it is gone from NVML and from the PCI bus"
        measured = "gone"
        reason = f"GPU {address} fell off during the load: {place}"
    elif not on_pci:
        measured = "gone from the PCI bus"
        reason = f"GPU {address} fell off during the load: it is gone from the PCI bus"
    else:
        measured = after.uuid.require(f"the UUID of GPU {address} after the load")
        reason = (
            f"GPU {address} is there after the load"
            if measured == uuid
            else f"GPU {address} came back as another one after the load ({measured}, {uuid} before)"
        )
    return CHECK.result(
        "PASS" if measured == uuid else "FAIL",
        address,
        reason,
        measured=measured,
        limit=uuid,
        source="NVML before the load",
    )


CHECK = Check(
    id="gpu_survived_load",
    title="the same GPUs are there after the load",
    phase="load",
    evaluate=evaluate,
)
