"""The kernel owns AER above every GPU, so that its error counters mean something."""

from __future__ import annotations

from collections.abc import Iterator

from nodeprep.checks._aer import why_not_owned
from nodeprep.checks._check import Check, Context
from nodeprep.checks._hops import gpu_paths, way
from nodeprep.model.facts import GpuPath
from nodeprep.model.result import CheckResult


def evaluate(context: Context) -> Iterator[CheckResult]:
    """One result for the way to each GPU: granted or taken, and reporting enabled on every hop."""
    for path, where in gpu_paths(context, "before"):
        yield CHECK.on(path.gpu, where, _judge, context, path)


def _judge(context: Context, path: GpuPath) -> CheckResult:
    found = way(context, "before", path)
    why = why_not_owned(context.before, found)
    hops = " > ".join(path.hops)
    return CHECK.result(
        "FAIL" if why else "PASS",
        path.gpu,
        f"AER above GPU {path.gpu} is not owned, its counters would read zero for ever: {why}"
        if why
        else f"the kernel owns AER on the way to GPU {path.gpu} ({hops}) and every hop reports",
        measured="not owned" if why else "owned by the kernel",
        limit="owned by the kernel",
        source="PCI Firmware Specification (_OSC); Linux Documentation/PCI/pcieaer-howto",
        evidence=("facts.before#/aer_ownership", *(f"{hop.where}/aer/reporting" for hop in found.hops)),
    )


CHECK = Check(
    id="aer_owned",
    title="the kernel owns AER above each GPU",
    phase="static",
    evaluate=evaluate,
)
