"""No GPU counted an uncorrected PCIe error while it was under load."""

from __future__ import annotations

from collections.abc import Iterator

from nodeprep.checks._check import Check, Context
from nodeprep.checks._facts import gpus, require_same_boot
from nodeprep.model.facts import Gpu
from nodeprep.model.reading import Unreadable
from nodeprep.model.result import CheckResult


def evaluate(context: Context) -> Iterator[CheckResult]:
    """One result a GPU, from the GPU's own counters: they can be read where AER is out of sight."""
    require_same_boot(context)
    after = {gpu.pci_address: gpu for gpu, _ in gpus(context, "after")}
    for gpu, where in gpus(context, "before"):
        address = gpu.pci_address
        yield CHECK.on(address, f"{where}/pcie_errors", _judge, gpu, after.get(address))


def _judge(before: Gpu, after: Gpu | None) -> CheckResult:
    address = before.pci_address
    if after is None:
        raise Unreadable(f"NVML does not list GPU {address} after the load")
    old, new = before.pcie_errors, after.pcie_errors
    counters = (old.non_fatal, new.non_fatal, old.fatal, new.fatal)
    if all(counter.state == "not_supported" for counter in counters):
        return CHECK.result("SKIPPED", address, f"GPU {address} does not count its uncorrected PCIe errors")
    grown = {}
    for name, then, now in (("non-fatal", old.non_fatal, new.non_fatal), ("fatal", old.fatal, new.fatal)):
        what = f"the {name} PCIe error counter of GPU {address}"
        grown[name] = now.require(what) - then.require(what)
        if grown[name] < 0:
            raise Unreadable(f"{what} went back: the driver was reloaded in between")
    total = sum(grown.values())
    listed = " and ".join(f"{count} {name}" for name, count in grown.items() if count)
    return CHECK.result(
        "FAIL" if total else "PASS",
        address,
        f"GPU {address} counted {listed or 'no uncorrected'} PCIe errors under load",
        measured=total,
        limit=0,
        unit="errors",
        source="NVML fields 179 and 180; PCIe: an uncorrected error is never part of normal operation",
    )


CHECK = Check(
    id="pcie_uncorrected_load",
    title="no uncorrected PCIe errors at the GPU",
    phase="load",
    evaluate=evaluate,
)
