"""The board's power delivery was put to the test by steps of load, and the bits stayed the same."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from nodeprep.checks._check import Check, Context
from nodeprep.checks._runs import each_run
from nodeprep.model.probe import GpuRun
from nodeprep.model.probe_phases import BurstPeriod, BurstPower
from nodeprep.model.reading import Unreadable
from nodeprep.model.result import CheckResult
from nodeprep.model.spec import Limit, Profile

BITS_SOURCE = "nodeprep: one product, one answer, at every step of load"


def evaluate(context: Context) -> Iterator[CheckResult]:
    """One result a GPU."""
    yield from each_run(CHECK, context, "transients", partial(_judge, context.spec.profile))


def _judge(profile: Profile, run: GpuRun) -> CheckResult:
    address = run.pci_address
    found = run.transients.require(f"the transients of GPU {address}")
    if found.mismatch_count:
        return CHECK.result(
            "FAIL",
            address,
            f"GPU {address} gave other bits in {found.mismatch_count} of {found.bursts_compared} bursts",
            measured=found.mismatch_count,
            limit=0,
            unit="bursts",
            source=BITS_SOURCE,
        )
    if not found.periods or found.bursts_compared < 1:
        raise Unreadable(f"no burst of load on GPU {address} was compared with another")
    seen = [(each, each.power.require(_what(each, address))) for each in found.periods]
    peak, trough = profile.transient_peak_fraction, profile.transient_trough_fraction
    if peak is None or trough is None:
        return CHECK.result(
            "SKIPPED",
            address,
            f"profile {profile.id} has no figure for steps of load; the bits of {found.bursts_compared} "
            f"bursts on GPU {address} were the same",
        )
    return _steps(address, seen, peak, trough)


def _steps(
    address: str, seen: list[tuple[BurstPeriod, BurstPower]], peak: Limit, trough: Limit
) -> CheckResult:
    """Each period must not reach both; one of them must, or nothing was put to the test."""
    period, power = max(seen, key=lambda each: _step(each[1]))
    reached = [
        one for one in seen if one[1].peak_of_limit >= peak.value and one[1].trough_of_limit <= trough.value
    ]
    if reached:
        period, power = max(reached, key=lambda each: _step(each[1]))
    return CHECK.result(
        "PASS" if reached else "FAIL",
        address,
        f"GPU {address} swung between {power.trough_w:.0f} W and {power.peak_w:.0f} W with a period of "
        f"{period.period_s:g} s, {power.trough_of_limit:.2f} to {power.peak_of_limit:.2f} of its limit"
        + ("" if reached else f"; {trough.value:g} to {peak.value:g} wanted at some period"),
        measured=round(power.peak_of_limit, 3),
        limit=peak.value,
        unit="fraction of limit",
        source=peak.source,
    )


def _step(power: BurstPower) -> float:
    return power.peak_of_limit - power.trough_of_limit


def _what(period: BurstPeriod, address: str) -> str:
    return f"the power of GPU {address} in bursts of {period.period_s:g} s"


CHECK = Check(
    id="transients",
    title="power delivery carried steps of load",
    phase="load",
    evaluate=evaluate,
)
