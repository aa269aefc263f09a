"""What was copied to the GPU and back is what was sent."""

from __future__ import annotations

from collections.abc import Iterator

from nodeprep.checks._check import Check, Context
from nodeprep.checks._runs import each_run
from nodeprep.model.probe import GpuRun
from nodeprep.model.reading import Unreadable
from nodeprep.model.result import CheckResult


def evaluate(context: Context) -> Iterator[CheckResult]:
    """One result a GPU."""
    yield from each_run(CHECK, context, "copies/content_errors", _judge)


def _judge(run: GpuRun) -> CheckResult:
    address, copies = run.pci_address, run.copies
    if copies.content_checks == 0 and copies.content_errors == 0:
        raise Unreadable(f"no copy of GPU {address} was compared with what was sent")
    return CHECK.result(
        "FAIL" if copies.content_errors else "PASS",
        address,
        f"{copies.content_errors} of {copies.content_checks} compared copies of GPU {address} came back "
        "changed: host memory, link or GPU memory alters data"
        if copies.content_errors
        else f"all {copies.content_checks} compared copies of GPU {address} came back as sent",
        measured=copies.content_errors,
        limit=0,
        unit="changed copies",
        source="nodeprep: no silent corruption is acceptable",
    )


CHECK = Check(
    id="copy_content",
    title="copies come back unchanged",
    phase="load",
    evaluate=evaluate,
)
