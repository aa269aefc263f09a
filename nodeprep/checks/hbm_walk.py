"""All free device memory keeps what is written to it."""

from __future__ import annotations

from collections.abc import Iterator

from nodeprep.checks._check import Check, Context
from nodeprep.checks._runs import each_run
from nodeprep.model.probe import GpuRun
from nodeprep.model.probe_phases import HbmWalk
from nodeprep.model.reading import Unreadable
from nodeprep.model.result import CheckResult

# Least part of the memory that a walk must have covered for its silence to mean something. Source: nodeprep's
# own; a GPU to itself has 0.97 of an H200's memory free, and 0.88 of the smallest board's (A100 40 GB).
LEAST_OF_TOTAL = 0.8
PATTERNS = ("address", "checkerboard", "inverse", "random")
SOURCE = "nodeprep: memory keeps what is written to it; ECC corrects what it can"


def evaluate(context: Context) -> Iterator[CheckResult]:
    """One result a GPU."""
    yield from each_run(CHECK, context, "hbm_walk", _judge)


def _judge(run: GpuRun) -> CheckResult:
    address = run.pci_address
    walk = run.hbm_walk.require(f"the walk over the memory of GPU {address}")
    if walk.errors:
        return _result(
            "FAIL", run, walk, f"the memory of GPU {address} changed {walk.errors} words{_first(walk)}"
        )
    left_out = [name for name in PATTERNS if name not in walk.patterns or walk.patterns[name].passes < 1]
    if left_out:
        raise Unreadable(
            f"the memory of GPU {address} was not walked with the patterns {', '.join(left_out)}"
        )
    part = walk.walked_bytes / walk.total_bytes if walk.total_bytes > 0 else 0.0
    if part < LEAST_OF_TOTAL:
        raise Unreadable(
            f"only {part:.0%} of the memory of GPU {address} was free to be walked, at least "
            f"{LEAST_OF_TOTAL:.0%} wanted: somebody else holds the rest"
        )
    passes = sum(pattern.passes for pattern in walk.patterns.values())
    words = f"GPU {address} kept every word of {walk.walked_bytes / 2**30:.0f} GiB in {passes} passes"
    return _result("PASS", run, walk, words)


def _first(walk: HbmWalk) -> str:
    if not walk.faults:
        return ""
    first = walk.faults[0]
    again = "wrong again when read once more" if first.again else "right when read once more"
    return (
        f", first at byte {first.offset_bytes:#x} of the walk, pattern {first.pattern}: "
        f"expected {first.expected}, got {first.got} ({again})"
    )


def _result(status: str, run: GpuRun, walk: HbmWalk, words: str) -> CheckResult:
    return CHECK.result(
        "FAIL" if status == "FAIL" else "PASS",
        run.pci_address,
        words,
        measured=walk.errors,
        limit=0,
        unit="words",
        source=SOURCE,
    )


CHECK = Check(
    id="hbm_walk",
    title="device memory keeps what is written to it",
    phase="load",
    evaluate=evaluate,
)
