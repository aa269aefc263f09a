"""The kernel owns AER above every GPU, so that its error counters mean something."""

from __future__ import annotations

from collections.abc import Iterator

from nodeprep.checks._aer import loss
from nodeprep.checks._check import Check, Context
from nodeprep.checks._hops import gpu_paths, way
from nodeprep.model.facts import GpuPath
from nodeprep.model.reading import Unreadable
from nodeprep.model.result import CheckResult


def evaluate(context: Context) -> Iterator[CheckResult]:
    """One result for the way to each GPU: granted or taken, and reporting enabled on every hop.

    Where the kernel was given nothing, nothing is known of errors: that is an ERROR, and the node
    inconclusive. A hop that keeps silent below a kernel that owns AER is a FAIL.
    """
    for path, where in gpu_paths(context, "before"):
        yield CHECK.on(path.gpu, where, _judge, context, path)


def _judge(context: Context, path: GpuPath) -> CheckResult:
    found = way(context, "before", path)
    lost = loss(context.before, found)
    if lost is not None and lost.blind:
        raise Unreadable(f"whether errors occur on the way to GPU {path.gpu} is unknown: {lost.why}")
    hops = " > ".join(path.hops)
    return CHECK.result(
        "FAIL" if lost else "PASS",
        path.gpu,
        f"AER on the way to GPU {path.gpu} is the kernel's, and it misses errors: {lost.why}"
        if lost
        else f"the kernel owns AER on the way to GPU {path.gpu} ({hops}) and every hop reports",
        measured="does not report" if lost else "owned by the kernel, and reporting",
        limit="owned by the kernel, and reporting",
        source="PCI Firmware Specification (_OSC); Linux Documentation/PCI/pcieaer-howto",
        evidence=("facts.before#/aer_ownership", *(f"{hop.where}/aer/reporting" for hop in found.hops)),
    )


CHECK = Check(
    id="aer_owned",
    title="the kernel owns AER above each GPU",
    phase="static",
    evaluate=evaluate,
)
