"""The workload produced no NaN and no infinity."""

from __future__ import annotations

from collections.abc import Iterator

from nodeprep.checks._check import Check, Context
from nodeprep.checks._runs import each_run
from nodeprep.model.probe import GpuRun
from nodeprep.model.result import CheckResult


def evaluate(context: Context) -> Iterator[CheckResult]:
    """One result a GPU. Comparing numbers misses NaN, which differs from itself: hence a count."""
    yield from each_run(CHECK, context, "non_finite_values", _judge)


def _judge(run: GpuRun) -> CheckResult:
    count = run.non_finite_values.require(f"the count of non-finite values of GPU {run.pci_address}")
    return CHECK.result(
        "FAIL" if count else "PASS",
        run.pci_address,
        f"GPU {run.pci_address} produced {count or 'no'} non-finite values (NaN or infinity)",
        measured=count,
        limit=0,
        unit="values",
        source="nodeprep: the workload's input and weights keep every block in the range of its type",
    )


CHECK = Check(
    id="probe_finite",
    title="no non-finite values",
    phase="load",
    evaluate=evaluate,
)
