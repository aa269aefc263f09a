"""GPUs do not count more corrected PCIe errors under load than the specified bit error rate explains."""

from __future__ import annotations

from collections.abc import Iterator

from nodeprep.checks._aer import why_not_owned
from nodeprep.checks._check import Check, Context
from nodeprep.checks._counters import growth_where_counted
from nodeprep.checks._facts import gpus, require_same_boot
from nodeprep.checks._hops import gpu_paths, way
from nodeprep.checks._runs import each_run, result, telemetry
from nodeprep.model.facts import GpuPcieErrors
from nodeprep.model.probe import GpuRun
from nodeprep.model.reading import Unreadable
from nodeprep.model.result import CheckResult
from nodeprep.model.spec import Limit

# One bad bit makes at most one of each. Not among them: l0_to_recovery, which counts changes of the
# link's power state too, and unsupported_requests, which software makes. None of them is the sum of the
# others: an H200 was seen with 21 receiver errors and 24 bad TLPs while `correctable` stood at 0.
_COUNTERS = {
    "correctable": "corrected errors",
    "receiver_errors": "receiver errors",
    "bad_tlp": "bad TLPs",
    "bad_dllp": "bad DLLPs",
    "lcrc": "LCRC errors",
    "lane": "lane errors",
    "naks_sent": "NAKs sent",
    "naks_received": "NAKs received",
}
# A part that lacks one of these has not said that its receiver was quiet.
_NEEDED = ("receiver_errors", "bad_tlp", "bad_dllp")


def evaluate(context: Context) -> Iterator[CheckResult]:
    """One result a GPU: the counter that grew most, over the length of the probe."""
    require_same_boot(context)
    minutes = result(context).duration_s / 60
    if minutes <= 0:
        raise Unreadable("the probe took no time, so there is no rate")
    before = {gpu.pci_address: gpu for gpu, _ in gpus(context, "before")}
    after = {gpu.pci_address: gpu for gpu, _ in gpus(context, "after")}

    def judge(run: GpuRun) -> CheckResult:
        address = run.pci_address
        if address not in before or address not in after:
            raise Unreadable(f"NVML did not list GPU {address} both before and after the load")
        grown = _growths(address, before[address].pcie_errors, after[address].pcie_errors)
        return _judge(context, run, grown, minutes)

    yield from each_run(CHECK, context, "telemetry/link_width_lanes", judge)


def _growths(address: str, old: GpuPcieErrors, new: GpuPcieErrors) -> dict[str, int]:
    found = {
        name: growth_where_counted(
            getattr(old, name), getattr(new, name), f"the counter of {words} of GPU {address}"
        )
        for name, words in _COUNTERS.items()
    }
    return {name: count for name, count in found.items() if count is not None}


def _judge(context: Context, run: GpuRun, grown: dict[str, int], minutes: float) -> CheckResult:
    address = run.pci_address
    worst = max(grown, key=lambda name: grown[name], default="")
    limit = _limit(context, run, grown, worst)
    rate = grown.get(worst, 0) / minutes
    if rate > limit.value:
        listed = ", ".join(f"{count} {_COUNTERS[name]}" for name, count in grown.items() if count)
        reason = (
            f"GPU {address} counted {listed} under load: {rate:.3g} {_COUNTERS[worst]} a minute, "
            f"at most {limit.value:.3g} expected"
        )
        return _result("FAIL", address, reason, rate, limit)
    missing = [name for name in _NEEDED if name not in grown]
    if missing:
        return _told_by_aer(context, address, missing)
    reason = f"GPU {address} counted {f'at most {rate:.3g}' if rate else 'no'} corrected PCIe errors a minute"
    return _result("PASS", address, f"{reason} under load", rate, limit)


def _limit(context: Context, run: GpuRun, grown: dict[str, int], worst: str) -> Limit:
    profile = context.spec.profile
    width = telemetry(run).link_width_lanes.require(f"the link width of GPU {run.pci_address} under load")
    per_lane = profile.replays_per_lane_minute
    if per_lane is not None:
        return Limit(value=per_lane.value * width.min, unit="errors/min", source=per_lane.source)
    if grown.get(worst):
        raise Unreadable(
            f"GPU {run.pci_address} counted {grown[worst]} {_COUNTERS[worst]} under load, and profile "
            f"{profile.id} has no figure for the generation of this link; set policy pcie_link.gen"
        )
    return Limit(value=0, unit="errors/min", source=f"profile {profile.id} has no figure, hence none at all")


def _told_by_aer(context: Context, address: str, missing: list[str]) -> CheckResult:
    """Where the kernel counts the same errors, the GPU need not.

    Raises:
        Unreadable: Nobody counts them.
    """
    listed = ", ".join(_COUNTERS[name] for name in missing)
    path = next((path for path, _ in gpu_paths(context, "before") if path.gpu == address), None)
    if path is None:
        raise Unreadable(f"GPU {address} does not count {listed}, and is not on the PCI bus")
    why = why_not_owned(context.before, way(context, "before", path))
    if why:
        raise Unreadable(f"GPU {address} does not count {listed}, and nobody else does: {why}")
    reason = f"GPU {address} does not count {listed}; the kernel does (aer_quiet_load)"
    return CHECK.result("SKIPPED", address, reason)


def _result(status: str, address: str, reason: str, rate: float, limit: Limit) -> CheckResult:
    return CHECK.result(
        "FAIL" if status == "FAIL" else "PASS",
        address,
        reason,
        measured=round(rate, 3),
        limit=round(limit.value, 3),
        unit=limit.unit,
        source=limit.source,
    )


_NOT_EVERY_PART = "not every part counts it; receiver errors, bad TLPs and bad DLLPs are then the answer"

CHECK = Check(
    id="pcie_corrected_load",
    title="corrected PCIe errors at the GPU stay within the specified bit error rate",
    phase="load",
    evaluate=evaluate,
    tolerates={
        f"nvml/gpus/*/pcie_errors/{name}": _NOT_EVERY_PART for name in _COUNTERS if name not in _NEEDED
    },
)
