"""The probe ran to its end on every GPU, for as long as its level means, with nothing injected."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from nodeprep.checks._check import Check, Context
from nodeprep.checks._facts import gpus
from nodeprep.checks._runs import result, runs
from nodeprep.model.probe import GpuRun, ProbeResult
from nodeprep.model.reading import Unreadable
from nodeprep.model.result import CheckResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Least:
    """What a level must have done on each GPU for its name to mean something.

    Attributes:
        compute_s: Length of the compute phase, seconds.
        compared: Iterations whose bits were compared with the reference.
    """

    compute_s: float
    compared: int


# Source: nodeprep's own. The levels give the compute phases what the others leave (nodeprep/probe/levels.py):
# of a quick run's 54 s that is 27 s on one GPU and 16 s where eight take turns with their lone copies. One
# iteration in 10 s is a tenth of what an H200 SXM does (1.04 s each), and no part worth certifying is slower.
LEAST = {
    "quick": Least(compute_s=10.0, compared=3),
    "standard": Least(compute_s=420.0, compared=42),
    "extended": Least(compute_s=6300.0, compared=630),
}
# Part of a soak that its compute phases are: 0.9 of each leg of half an hour (nodeprep/probe/levels.py).
LEAST_OF_SOAK = 0.8
# A simulated GPU has nothing to warm up; it must still have been compared more than once.
SIMULATED = Least(compute_s=0.0, compared=2)


def evaluate(context: Context) -> Iterator[CheckResult]:
    """One result for the probe and one for each GPU that NVML lists or the probe knows."""
    probe = result(context)
    yield CHECK.on("node", "probe#/state", _judge_probe, context)
    anybody_completed = any(run.state == "completed" for run in probe.gpus)
    for run, where in runs(context):
        yield CHECK.on(run.pci_address, f"{where}/state", partial(_judge_run, probe), run, anybody_completed)
    loaded = {run.pci_address for run in probe.gpus}
    for gpu, where in gpus(context, "before"):
        address = gpu.pci_address
        if address not in loaded:
            yield CHECK.result("ERROR", address, f"the probe did not load GPU {address}", evidence=(where,))


def _judge_probe(context: Context) -> CheckResult:
    probe = result(context)
    anybody_completed = any(run.state == "completed" for run in probe.gpus)
    killed = sum(_was_killed(run) for run in probe.gpus)
    failed = sum(run.state == "failed" for run in probe.gpus) - killed
    if probe.injected:
        return CHECK.result(
            "ERROR",
            "node",
            f"a fault was injected on purpose ({probe.injected}): the run says how the probe works, "
            "not how the node does",
        )
    if probe.state == "interrupted":
        return CHECK.result("ERROR", "node", f"the probe was interrupted after {probe.duration_s:.0f} s")
    if probe.state == "failed" and not anybody_completed:
        return CHECK.result("ERROR", "node", f"the probe could not run: {probe.error or 'no reason given'}")
    if killed and not failed:
        return CHECK.result("ERROR", "node", f"the probe was killed on {killed} of {len(probe.gpus)} GPUs")
    return CHECK.result(
        "FAIL" if failed or probe.state == "failed" else "PASS",
        "node",
        f"the probe failed on {failed} of {len(probe.gpus)} GPUs"
        if failed or probe.state == "failed"
        else f"the probe ran {probe.duration_s:.0f} s on {len(probe.gpus)} GPUs",
        measured=probe.state,
        limit="completed",
        source=f"certification level {probe.level}",
    )


def _was_killed(run: GpuRun) -> bool:
    """Nothing that a GPU does sends SIGKILL: that is the host's memory running out, or somebody's hand."""
    return run.state == "failed" and "killed by SIGKILL" in run.error


def _judge_run(probe: ProbeResult, run: GpuRun, anybody_completed: bool) -> CheckResult:
    address, why = run.pci_address, run.error or "no reason given"
    if run.state in ("interrupted", "skipped"):
        return CHECK.result("ERROR", address, f"the probe was {run.state} on GPU {address}: {why}")
    if run.state == "failed" and not anybody_completed:
        # With no GPU that got through, the node's Python or driver may be at fault as well as the GPU.
        return CHECK.result("ERROR", address, f"the probe failed on GPU {address}, and ended on none: {why}")
    if _was_killed(run):
        return CHECK.result("ERROR", address, f"the probe was killed on GPU {address}: {why}")
    if run.state == "failed":
        return CHECK.result(
            "FAIL",
            address,
            f"GPU {address} did not survive the load that others of its node did: {why}",
            measured=run.state,
            limit="completed",
            source="the other GPUs of this node",
        )
    least = _least(probe)
    compared = run.digests.require(f"the compared iterations of GPU {address}").iterations_compared
    computed_s = sum(phase.end_s - phase.start_s for phase in run.phases if phase.name == "compute")
    if computed_s < least.compute_s or compared < least.compared:
        raise Unreadable(
            f"GPU {address} computed for {computed_s:.4g} s with {compared} iterations compared; the level "
            f"{probe.level} means at least {least.compute_s:g} s and {least.compared}"
        )
    return CHECK.result(
        "PASS",
        address,
        f"GPU {address} computed for {computed_s:.4g} s, {compared} iterations compared",
        measured=round(computed_s, 3),
        limit=least.compute_s,
        unit="s of compute",
        source=f"certification level {probe.level}, nodeprep's own",
    )


def _least(probe: ProbeResult) -> Least:
    """What the run must have done.

    Raises:
        Unreadable: A level that this version does not know, or real hardware that was never loaded.
    """
    if probe.level not in LEAST and probe.level != "soak":
        raise Unreadable(f"this version does not know what the level {probe.level!r} means")
    if probe.backend == "torch":
        return LEAST[probe.level] if probe.level != "soak" else _least_of_soak(probe)
    if not probe.simulated:
        raise Unreadable(f"the backend {probe.backend} loads no GPU, and the result does not say simulated")
    return SIMULATED


def _least_of_soak(probe: ProbeResult) -> Least:
    """Of the time that the soak lasted without its gaps, which soak_gaps judges.

    Raises:
        Unreadable: There is no account of it.
    """
    soak = probe.soak.require("the account of the soak")
    loaded_s = soak.lasted_s - sum(gap.end_s - gap.start_s for gap in soak.gaps)
    return Least(compute_s=LEAST_OF_SOAK * loaded_s, compared=int(LEAST_OF_SOAK * loaded_s / 10))


CHECK = Check(
    id="probe_completed",
    title="the probe completed on every GPU",
    phase="load",
    evaluate=evaluate,
)
