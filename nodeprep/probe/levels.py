"""How long each level runs, split over its phases."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Dict, Optional

from .problem import UsageProblem

LEVELS = ("quick", "standard", "extended", "soak")


@dataclass(frozen=True)
class Budget:
    """Seconds for each phase on one GPU.

    Attributes:
        total_s: From the start of the probe to its result; the compute phase ends early to keep it.
            None means the compute phase has its full length whatever came before.
        copies_s: Lone copies, each direction.
        ceiling_s: The matrix product.
        warm_up_s: Model iterations before the first measured one: power and clocks settle.
        compute_s: Measured iterations.
        cool_down_s: Telemetry after the load.
        pace_s: Least time from the start of one iteration to the next; 0 does not wait.
        telemetry_s: Period of the samples.
        progress_s: Time between two progress lines.
        least_iterations: Measured whatever the time: a slow GPU gets its verdict late rather than none.
    """

    total_s: Optional[float]
    copies_s: float
    ceiling_s: float
    warm_up_s: float
    compute_s: float
    cool_down_s: float
    pace_s: float
    telemetry_s: float
    progress_s: float
    least_iterations: int


# NVML's power is a mean over one second, and clocks settle within two: 3 s of warm-up.
# Quick must answer within 60 s of its start, the import of torch (3 to 7 s) and the judging included.
_TORCH: Dict[str, Budget] = {
    "quick": Budget(52.0, 0.6, 2.0, 3.0, 36.0, 2.0, 0.0, 0.5, 2.0, 3),
    "standard": Budget(600.0, 2.0, 5.0, 10.0, 590.0, 10.0, 0.0, 0.5, 5.0, 3),
    "extended": Budget(7200.0, 2.0, 10.0, 30.0, 7190.0, 30.0, 0.0, 0.5, 15.0, 3),
}
# The simulated rack rehearses the path; waiting longer there would find nothing more. Iterations are
# paced so that a rack of eight nodes fits on two CPU cores; where it does not, eight iterations still
# leave room for a fault in one of them.
_NUMPY: Dict[str, Budget] = {
    "quick": Budget(None, 0.1, 0.1, 0.3, 2.4, 0.4, 0.15, 0.25, 1.0, 8),
    "standard": Budget(None, 0.1, 0.1, 0.5, 6.0, 0.5, 0.15, 0.5, 1.0, 8),
    "extended": Budget(None, 0.1, 0.1, 0.5, 12.0, 0.5, 0.15, 0.5, 1.0, 8),
}


def budget(level: str, backend: str, duration_s: Optional[float] = None) -> Budget:
    """The budget of a level, with the compute phase's length replaced when one is given.

    Raises:
        UsageProblem: Unknown level, or one this version does not have.
    """
    if level == "soak":
        raise UsageProblem(
            "the level soak is not in this version",
            hint="the longest level is extended (two hours); --duration-s lengthens its compute phase",
        )
    table = _TORCH if backend == "torch" else _NUMPY
    if level not in table:
        raise UsageProblem("unknown level %r" % level, hint="levels: %s" % ", ".join(table))
    if duration_s is None:
        return table[level]
    if not 0 < duration_s < 30 * 86400:
        raise UsageProblem("--duration-s must be above 0 and below 30 days")
    return replace(table[level], total_s=None, compute_s=duration_s)
