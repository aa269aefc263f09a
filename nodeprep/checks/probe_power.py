"""The load drew the power that the limit allows: without that, nothing else was put to the test."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from nodeprep.checks._check import Check, Context
from nodeprep.checks._runs import each_run, telemetry
from nodeprep.model.probe import GpuRun
from nodeprep.model.result import CheckResult
from nodeprep.model.spec import Limit


def evaluate(context: Context) -> Iterator[CheckResult]:
    """One result a GPU: mean power during compute as a fraction of the enforced limit."""
    floor = context.spec.profile.power_of_limit_fraction
    if floor is None:
        reason = f"profile {context.spec.profile.id} has no figure for the power of the load"
        yield CHECK.result("SKIPPED", "node", reason)
        return
    yield from each_run(CHECK, context, "telemetry/power_w", partial(_judge, floor))


def _judge(floor: Limit, run: GpuRun) -> CheckResult:
    samples, address = telemetry(run), run.pci_address
    drawn = samples.power_w.require(f"the power draw of GPU {address} under load").mean
    limit = samples.enforced_limit_w.require(f"the enforced power limit of GPU {address} under load")
    fraction = drawn / limit if limit > 0 else 0.0
    return CHECK.result(
        "PASS" if fraction >= floor.value else "FAIL",
        address,
        f"GPU {address} drew {drawn:.0f} W on average under load, {fraction:.1%} of its limit of {limit:g} W"
        + ("" if fraction >= floor.value else f", at least {floor.value:.0%} wanted"),
        measured=round(fraction, 4),
        limit=floor.value,
        unit="fraction of limit",
        source=floor.source,
    )


CHECK = Check(
    id="probe_power",
    title="the load reached the power limit",
    phase="load",
    evaluate=evaluate,
)
