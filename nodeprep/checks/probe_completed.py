"""The probe ran to its end on every GPU of the node, with nothing injected."""

from __future__ import annotations

from collections.abc import Iterator

from nodeprep.checks._check import Check, Context
from nodeprep.checks._facts import gpus
from nodeprep.checks._runs import result, runs
from nodeprep.model.probe import GpuRun
from nodeprep.model.result import CheckResult


def evaluate(context: Context) -> Iterator[CheckResult]:
    """One result for the probe and one for each GPU that NVML lists or the probe knows."""
    probe = result(context)
    yield CHECK.on("node", "probe#/state", _judge_probe, context)
    anybody_completed = any(run.state == "completed" for run in probe.gpus)
    for run, where in runs(context):
        yield CHECK.on(run.pci_address, f"{where}/state", _judge_run, run, anybody_completed)
    loaded = {run.pci_address for run in probe.gpus}
    for gpu, where in gpus(context, "before"):
        address = gpu.pci_address
        if address not in loaded:
            yield CHECK.result("ERROR", address, f"the probe did not load GPU {address}", evidence=(where,))


def _judge_probe(context: Context) -> CheckResult:
    probe = result(context)
    anybody_completed = any(run.state == "completed" for run in probe.gpus)
    failed = sum(run.state == "failed" for run in probe.gpus)
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


def _judge_run(run: GpuRun, anybody_completed: bool) -> CheckResult:
    address, why = run.pci_address, run.error or "no reason given"
    if run.state in ("interrupted", "skipped"):
        return CHECK.result("ERROR", address, f"the probe was {run.state} on GPU {address}: {why}")
    if run.state == "failed" and not anybody_completed:
        # With no GPU that got through, the node's Python or driver may be at fault as well as the GPU.
        return CHECK.result("ERROR", address, f"the probe failed on GPU {address}, and ended on none: {why}")
    failed = run.state == "failed"
    return CHECK.result(
        "FAIL" if failed else "PASS",
        address,
        f"GPU {address} did not survive the load that others of its node did: {why}"
        if failed
        else f"GPU {address} completed {run.iterations} iterations",
        measured=run.state,
        limit="completed",
        source="the other GPUs of this node" if failed else "probe",
    )


CHECK = Check(
    id="probe_completed",
    title="the probe completed on every GPU",
    phase="load",
    evaluate=evaluate,
)
