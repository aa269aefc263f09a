"""Nothing but the power limit held the clocks down under load: no fault, and nobody's setting."""

from __future__ import annotations

from collections.abc import Iterator

from nodeprep.checks._check import Check, Context
from nodeprep.checks._runs import each_run, telemetry
from nodeprep.model.probe import GpuRun
from nodeprep.model.result import CheckResult

# Source: NVIDIA DCGM, Azure NHC; the bits from nvml.h, nvmlClocksEventReasons. 0x2 is nodeprep's own: a
# GPU whose clocks somebody locked is slow without being hot or short of power, and all of a rack alike.
# An H200 SXM at default settings showed 0x4 and no other bit in its whole quick run.
FAILING = {
    0x2: "the clocks setting: somebody locked the clocks (nvidia-smi -rac and -rgc undo it)",
    0x8: "hardware slowdown",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "hardware power brake",
}
POWER_CAP = 0x4
# A cap for most of the time at a draw this far below the limit is not the limit's doing: the board
# or the platform holds the GPU down. Source: public field report; the fraction is nodeprep's own.
WELL_BELOW_FRACTION = 0.8
MOST_OF_THE_TIME = 0.5


def evaluate(context: Context) -> Iterator[CheckResult]:
    """One result a GPU. The reasons are bits and are tested as a mask: several are set at once."""
    yield from each_run(CHECK, context, "telemetry/event_reasons_union", _judge)


def _judge(run: GpuRun) -> CheckResult:
    samples, address = telemetry(run), run.pci_address
    seen = samples.event_reasons_union.require(f"the clock event reasons of GPU {address} under load")
    failing = [bit for bit in FAILING if seen & bit]
    if failing:
        listed = ", ".join(
            f"{FAILING[bit]} ({bit:#x}, {samples.event_reason_samples.get(hex(bit), 0)} of "
            f"{samples.samples} samples)"
            for bit in failing
        )
        reason = f"clocks of GPU {address} were held down under load by {listed}"
        return _result(False, address, reason, seen)
    if seen & POWER_CAP:
        capped = samples.event_reason_samples.get(hex(POWER_CAP), 0) / samples.samples
        drawn = samples.power_w.require(f"the power draw of GPU {address} under load").mean
        limit = samples.enforced_limit_w.require(f"the enforced power limit of GPU {address} under load")
        if capped >= MOST_OF_THE_TIME and drawn < WELL_BELOW_FRACTION * limit:
            reason = (
                f"GPU {address} was power capped ({capped:.0%} of the samples) while drawing {drawn:.0f} W "
                f"of its {limit:g} W: the platform holds it down, not its limit"
            )
            return _result(False, address, reason, seen)
        reason = f"only the power limit held the clocks of GPU {address} (0x4), as it should at full load"
        return _result(True, address, reason, seen)
    return _result(True, address, f"nothing held the clocks of GPU {address} down under load", seen)


def _result(good: bool, address: str, reason: str, seen: int) -> CheckResult:
    return CHECK.result(
        "PASS" if good else "FAIL",
        address,
        reason,
        measured=f"{seen:#x}",
        limit=f"none of {sum(FAILING):#x}, and {POWER_CAP:#x} only near the power limit",
        source="NVIDIA DCGM, Azure NHC; nvml.h for 0x2",
    )


CHECK = Check(
    id="clock_reasons_load",
    title="no failing clock reason under load",
    phase="load",
    evaluate=evaluate,
    explains=("probe_performance", "probe_power"),
)
