"""Device memory is as fast as the part's, and as its own clock and width allow."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from nodeprep.checks._check import Check, Context
from nodeprep.checks._runs import each_run
from nodeprep.model.probe import GpuRun
from nodeprep.model.result import CheckResult
from nodeprep.model.spec import Profile


def evaluate(context: Context) -> Iterator[CheckResult]:
    """One result a GPU: the floor of the part, where there is one, and the one relative to the peak."""
    yield from each_run(CHECK, context, "hbm_bandwidth", partial(_judge, context.spec.profile))


def _judge(profile: Profile, run: GpuRun) -> CheckResult:
    address = run.pci_address
    rates = run.hbm_bandwidth.require(f"the memory bandwidth of GPU {address}")
    copied = rates.copy_gbps.require(f"the memory bandwidth of GPU {address} in copies")
    # Read and write alone judge nothing, but a memory that could not do them is not healthy.
    rates.read_gbps.require(f"the memory bandwidth of GPU {address} in reads")
    rates.write_gbps.require(f"the memory bandwidth of GPU {address} in writes")
    peak = rates.peak_gbps.require(f"the peak memory bandwidth of GPU {address}")
    floor, relative = profile.hbm_copy_gbps, profile.hbm_of_peak_fraction
    part = copied / peak if peak > 0 else 0.0
    if floor is not None and not copied >= floor.value:
        return CHECK.result(
            "FAIL",
            address,
            f"the memory of GPU {address} copied {copied:.0f} GB/s (read and written), at least "
            f"{floor.value:g} wanted",
            measured=round(copied, 1),
            limit=floor.value,
            unit="GB/s",
            source=floor.source,
        )
    absolute = f", and the part's floor is {floor.value:g}" if floor is not None else ""
    return CHECK.result(
        "PASS" if part >= relative.value else "FAIL",
        address,
        f"the memory of GPU {address} copied {copied:.0f} GB/s (read and written), {part:.0%} of what its "
        f"clock and width allow; at least {relative.value:.0%} wanted{absolute}",
        measured=round(part, 4),
        limit=relative.value,
        unit="fraction of peak",
        source=relative.source,
    )


CHECK = Check(
    id="hbm_bandwidth",
    title="device memory reaches its bandwidth",
    phase="load",
    evaluate=evaluate,
)
