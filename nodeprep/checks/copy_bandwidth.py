"""Pinned copies between host and GPU reach what the link's generation and width give."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from nodeprep.checks._check import Check, Context
from nodeprep.checks._runs import each_run
from nodeprep.model.probe import GpuRun
from nodeprep.model.result import CheckResult
from nodeprep.model.spec import Limit


def evaluate(context: Context) -> Iterator[CheckResult]:
    """One result a GPU, both ways. The spec's figures are for the link as the policy wants it."""
    profile = context.spec.profile
    if profile.copy_h2d_gbps is None or profile.copy_d2h_gbps is None:
        yield CHECK.result(
            "SKIPPED", "node", f"profile {profile.id} has no figure for copies over the link wanted here"
        )
        return
    judge = partial(_judge, profile.copy_h2d_gbps, profile.copy_d2h_gbps)
    yield from each_run(CHECK, context, "copies", judge)


def _judge(to_device: Limit, to_host: Limit, run: GpuRun) -> CheckResult:
    address, copies = run.pci_address, run.copies
    h2d = copies.alone_h2d_gbps.require(f"the copy bandwidth host to GPU {address}")
    d2h = copies.alone_d2h_gbps.require(f"the copy bandwidth GPU {address} to host")
    # Shown is the way that is worse off; on a healthy link the two are within a few per cent.
    measured, floor, way = min(
        (h2d, to_device, f"host to GPU {address}"),
        (d2h, to_host, f"GPU {address} to host"),
        key=lambda entry: entry[0] / entry[1].value,
    )
    return CHECK.result(
        "PASS" if measured >= floor.value else "FAIL",
        address,
        f"copies {way} reached {measured:.1f} {floor.unit} alone, at least {floor.value:g} wanted",
        measured=round(measured, 2),
        limit=floor.value,
        unit=floor.unit,
        source=floor.source,
    )


CHECK = Check(
    id="copy_bandwidth",
    title="copies reach the link's bandwidth",
    phase="load",
    evaluate=evaluate,
)
