"""The GPUs of a node carried the load alike: at the same time, and at the same part of their power limit."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from statistics import median

from nodeprep.checks._check import Check, Context
from nodeprep.checks._peers import ALONE
from nodeprep.checks._runs import each_run, result, telemetry
from nodeprep.model.probe import GpuRun, ProbeResult
from nodeprep.model.reading import Unreadable
from nodeprep.model.result import CheckResult

# Below this part of its own compute time beside all others, a GPU was not loaded with them: contention for
# power, air and PCIe was then not there. Source: nodeprep's own, half.
LEAST_TOGETHER = 0.5


def evaluate(context: Context) -> Iterator[CheckResult]:
    """One result a GPU."""
    probe = result(context)
    if len(probe.gpus) < 2:
        yield CHECK.result("SKIPPED", "node", ALONE)
        return
    yield from each_run(CHECK, context, "telemetry", partial(_judge, context, probe))


def _judge(context: Context, probe: ProbeResult, run: GpuRun) -> CheckResult:
    address, spread = run.pci_address, context.spec.profile.spread_fraction
    start_s, end_s = _computed(run)
    others = [other for other in probe.gpus if other is not run and _has_computed(other)]
    if not others:
        raise Unreadable(f"no other GPU computed, so GPU {address} was loaded by itself")
    windows = [_computed(other) for other in others]
    together_s = min(end_s, *(end for _, end in windows)) - max(start_s, *(start for start, _ in windows))
    skew_s = start_s - min(start_s, *(start for start, _ in windows))
    # The simulated rack's processes share a few CPU cores, and start when those let them.
    if not probe.simulated and together_s < LEAST_TOGETHER * (end_s - start_s):
        raise Unreadable(
            f"GPU {address} computed from {start_s:.1f} to {end_s:.1f} s, only {max(0.0, together_s):.1f} s "
            "of it beside all the others"
        )
    same = [other for other in others if other.name == run.name]
    own = _power_fraction(run)
    typical = median([own, *(_power_fraction(other) for other in same)])
    floor = typical * (1 - spread.value)
    return CHECK.result(
        "PASS" if own >= floor else "FAIL",
        address,
        f"GPU {address} drew {own:.1%} of its power limit, the median of {len(same) + 1} of its model is "
        f"{typical:.1%}; it began {skew_s:.2f} s after the first",
        measured=round(own, 4),
        limit=round(floor, 4),
        unit="fraction of the enforced limit",
        source=f"{spread.value:.0%} below the median of the node; tolerance: {spread.source}",
    )


def _has_computed(run: GpuRun) -> bool:
    return any(phase.name == "compute" for phase in run.phases)


def _computed(run: GpuRun) -> tuple[float, float]:
    """Seconds of the run at which the GPU began and ended to compute."""
    phases = [phase for phase in run.phases if phase.name == "compute"]
    if not phases:
        raise Unreadable(f"GPU {run.pci_address} did not get to the compute phase")
    return phases[0].start_s, phases[-1].end_s


def _power_fraction(run: GpuRun) -> float:
    samples = telemetry(run)
    power = samples.power_w.require(f"the power of GPU {run.pci_address} under load")
    limit = samples.enforced_limit_w.require(f"the enforced power limit of GPU {run.pci_address}")
    if not limit > 0:
        raise Unreadable(f"the enforced power limit of GPU {run.pci_address} is {limit:g} W")
    return power.mean / limit


CHECK = Check(
    id="gpu_spread",
    title="all GPUs carried the load alike",
    phase="load",
    evaluate=evaluate,
)
