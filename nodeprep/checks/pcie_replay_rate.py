"""GPUs do not repeat more PCIe packets under load than the specified bit error rate explains."""

from __future__ import annotations

from collections.abc import Iterator

from nodeprep.checks._check import Check, Context
from nodeprep.checks._counters import growth, growth_where_counted
from nodeprep.checks._facts import gpus, require_same_boot
from nodeprep.checks._runs import each_run, result, telemetry
from nodeprep.model.facts import GpuPcieErrors
from nodeprep.model.probe import GpuRun
from nodeprep.model.reading import Unreadable
from nodeprep.model.result import CheckResult
from nodeprep.model.spec import Limit


def evaluate(context: Context) -> Iterator[CheckResult]:
    """One result a GPU: new replays over the length of the probe, against the figure for its link."""
    allowed = context.spec.profile.replays_per_lane_minute
    if allowed is None:
        reason = (
            f"profile {context.spec.profile.id} has no figure for the generation of this link; "
            "set policy pcie_link.gen"
        )
        yield CHECK.result("SKIPPED", "node", reason)
        return
    require_same_boot(context)
    minutes = result(context).duration_s / 60
    if minutes <= 0:
        raise Unreadable("the probe took no time, so there is no rate")
    before = {gpu.pci_address: gpu for gpu, _ in gpus(context, "before")}
    after = {gpu.pci_address: gpu for gpu, _ in gpus(context, "after")}

    def judge(run: GpuRun) -> CheckResult:
        if run.pci_address not in before or run.pci_address not in after:
            raise Unreadable(f"NVML did not list GPU {run.pci_address} both before and after the load")
        old, new = before[run.pci_address].pcie_errors, after[run.pci_address].pcie_errors
        return _judge(run, old, new, minutes, allowed)

    yield from each_run(CHECK, context, "telemetry/link_width_lanes", judge)


def _judge(
    run: GpuRun, old: GpuPcieErrors, new: GpuPcieErrors, minutes: float, allowed: Limit
) -> CheckResult:
    address = run.pci_address
    what = f"the PCIe replay counter of GPU {address}"
    sent = growth(old.replays, new.replays, what)
    # The port's replays are out of reach, but not the GPU's requests for them.
    what = f"the counter of NAKs that GPU {address} sent"
    received = growth_where_counted(old.naks_sent, new.naks_sent, what) or 0
    # A roll-over of REPLAY_NUM: one packet failed four times running.
    what = f"the PCIe replay roll-over counter of GPU {address}"
    rollovers = growth_where_counted(old.replay_rollovers, new.replay_rollovers, what) or 0
    width = telemetry(run).link_width_lanes.require(f"the link width of GPU {address} under load")
    limit = allowed.value * width.min
    rate = max(sent, received) / minutes
    who = f"GPU {address} repeated" if sent >= received else f"GPU {address} had the port repeat"
    reason = f"{who} {rate:.3g} packets a minute under load, at most {limit:.3g} expected on x{width.min:g}"
    if rollovers:
        reason = f"GPU {address} gave up repeating and retrained its link {rollovers} times; {reason}"
    return CHECK.result(
        "FAIL" if rate > limit or rollovers else "PASS",
        address,
        reason,
        measured=round(rate, 3),
        limit=round(limit, 3),
        unit="replays/min",
        source=allowed.source,
    )


CHECK = Check(
    id="pcie_replay_rate",
    title="PCIe replays stay within the specified bit error rate",
    phase="load",
    evaluate=evaluate,
    tolerates={
        "nvml/gpus/*/pcie_errors/naks_sent": "older drivers count the GPU's own replays only",
        "nvml/gpus/*/pcie_errors/replay_rollovers": "not every part counts roll-overs of REPLAY_NUM",
    },
)
