"""Which phases each level runs, in which order and for how long."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Dict, Mapping, Optional, Tuple

from .problem import UsageProblem

LEVELS = ("quick", "standard", "extended", "soak")
# The phase whose length is whatever the others leave.
ELASTIC = "compute"

Plan = Tuple[Tuple[str, float], ...]


# Measured on two H200: 9 s for what GPUs do together, and 1.3 s a GPU for the turns of lone copies.
_PEERS_START_S = 6.0
_PEERS_GPU_S = 1.7
_TURN_S = 1.3
# Of the 27 s of compute that quick gives a GPU by itself; 16 s stay, which is what eight GPUs get anyhow.
_SPARE_S = 11.0


@dataclass(frozen=True)
class Budget:
    """The phases of one GPU with their seconds.

    Attributes:
        total_s: From the start of the probe to its result; the compute phases end early to keep it.
            None means that the compute phase has its full length whatever came before.
        opening: Phases that run once, first, in this order.
        round: Phases that are repeated until the time is over; one of them is "compute".
        cool_down_s: Telemetry after the load.
        pace_s: Least time from the start of one iteration to the next; 0 does not wait.
        telemetry_s: Period of the samples.
        progress_s: Time between two progress lines.
        soak_s: Length of a whole soak, whose legs are runs of `total_s` each; 0 for other levels.
        least_iterations: Measured in each round whatever the time: a slow GPU gets its verdict late
            rather than none.
    """

    total_s: Optional[float]
    opening: Plan
    round: Plan
    cool_down_s: float
    pace_s: float
    telemetry_s: float
    progress_s: float
    least_iterations: int
    soak_s: float = 0.0

    def seconds(self, phase: str) -> float:
        """What a phase is given; 0 when the level has no such phase."""
        return dict((*self.opening, *self.round)).get(phase, 0.0)

    @property
    def beside_s(self) -> float:
        """Seconds of a round that are not the compute phase's."""
        return sum(seconds for name, seconds in self.round if name != ELASTIC)

    @property
    def round_s(self) -> float:
        """Length of a full round."""
        return sum(seconds for _, seconds in self.round)

    @property
    def planned_s(self) -> float:
        """About how long the whole run takes."""
        if self.total_s is not None:
            return self.total_s
        return sum(seconds for _, seconds in self.opening) + self.round_s + self.cool_down_s

    def with_peers(self, gpus: int) -> "Budget":
        """The budget of one GPU of several, whose measurements together come after its own load.

        They get their time from the compute phase as long as that keeps enough; eight GPUs take longer.
        """
        if self.total_s is None or gpus < 2:
            return self
        wanted = _PEERS_START_S + _PEERS_GPU_S * gpus
        return replace(self, total_s=self.total_s - max(0.0, min(wanted, _SPARE_S - _TURN_S * (gpus - 1))))

    def rounds_within(self, seconds: float) -> int:
        """How many rounds fit, none of them longer than a full one; at least one."""
        return max(1, -int(-seconds // self.round_s))


def budget_from(data: Mapping[str, Any]) -> Budget:
    """A budget that went through JSON."""
    plans = {key: tuple((str(name), float(s)) for name, s in data[key]) for key in ("opening", "round")}
    return Budget(**{**data, **plans})


# NVML's power is a mean over one second, and clocks settle within two: 3 s of warm-up.
# Quick must answer within 60 s of its start, the import of torch (3 to 7 s) and the judging included. What
# it leaves short: one walk over the memory, before it is hot, and seconds of transients instead of minutes.
# The longer levels repeat their round, so the memory is walked hot and the transients come on a warm board.
_TORCH: Dict[str, Budget] = {
    "quick": Budget(
        total_s=54.0,
        opening=(
            ("copies", 1.2),
            ("ceiling", 2.0),
            ("hbm-bandwidth", 0.6),
            ("hbm-walk", 1.0),
            ("build", 0.0),
            ("warm-up", 3.0),
        ),
        round=(("compute", 36.0), ("transients", 8.0)),
        cool_down_s=2.5,
        pace_s=0.0,
        telemetry_s=0.1,
        progress_s=2.0,
        least_iterations=3,
    ),
    "standard": Budget(
        total_s=600.0,
        opening=(
            ("copies", 4.0),
            ("ceiling", 5.0),
            ("hbm-bandwidth", 2.0),
            ("hbm-walk", 4.0),
            ("build", 0.0),
            ("warm-up", 10.0),
        ),
        round=(("compute", 130.0), ("transients", 12.0), ("hbm-walk", 4.0)),
        cool_down_s=10.0,
        pace_s=0.0,
        telemetry_s=0.1,
        progress_s=5.0,
        least_iterations=3,
    ),
    "extended": Budget(
        total_s=7200.0,
        opening=(
            ("copies", 4.0),
            ("ceiling", 10.0),
            ("hbm-bandwidth", 5.0),
            ("hbm-walk", 10.0),
            ("build", 0.0),
            ("warm-up", 30.0),
        ),
        round=(("compute", 570.0), ("transients", 20.0), ("hbm-walk", 10.0)),
        cool_down_s=30.0,
        pace_s=0.0,
        telemetry_s=0.5,
        progress_s=15.0,
        least_iterations=3,
    ),
}
# Source: nodeprep's own; a wafer-inspection cluster was trusted after seven days without a loss. Half an hour
# is what a kill costs at most; the start of a leg, 25 s without load, is 1.4 % of it.
SOAK_S = 7 * 86400.0
_TORCH["soak"] = replace(_TORCH["extended"], total_s=1800.0, progress_s=60.0, soak_s=SOAK_S)
# The simulated rack rehearses the path; waiting longer there would find nothing more. Iterations are
# paced so that a rack of eight nodes fits on two CPU cores; where it does not, eight iterations still
# leave room for a fault in one of them.
_SIMULATED_QUICK = Budget(
    total_s=None,
    opening=(
        ("copies", 0.2),
        ("ceiling", 0.1),
        ("hbm-bandwidth", 0.1),
        ("hbm-walk", 0.1),
        ("build", 0.0),
        ("warm-up", 0.3),
    ),
    round=(("compute", 2.4), ("transients", 2.2)),
    cool_down_s=0.6,
    pace_s=0.15,
    telemetry_s=0.25,
    progress_s=1.0,
    least_iterations=8,
)
_SIMULATED_LONGER = (("transients", 2.2), ("hbm-walk", 0.1))
_NUMPY: Dict[str, Budget] = {
    "quick": _SIMULATED_QUICK,
    "standard": replace(_SIMULATED_QUICK, round=(("compute", 6.0), *_SIMULATED_LONGER)),
    "extended": replace(_SIMULATED_QUICK, round=(("compute", 12.0), *_SIMULATED_LONGER)),
}
# Two legs, so that there is something to put together.
_NUMPY["soak"] = replace(_NUMPY["quick"], soak_s=16.0)


def budget(level: str, backend: str, duration_s: Optional[float] = None) -> Budget:
    """The budget of a level; a given duration is that of the compute phase, or of the whole soak.

    Raises:
        UsageProblem: Unknown level, or a length that makes no sense.
    """
    table = _TORCH if backend == "torch" else _NUMPY
    if level not in table:
        raise UsageProblem("unknown level %r" % level, hint="levels: %s" % ", ".join(table))
    if duration_s is None:
        return table[level]
    if not 0 < duration_s < 30 * 86400:
        raise UsageProblem("--duration-s must be above 0 and below 30 days")
    if level == "soak":
        return replace(table[level], soak_s=duration_s)
    return with_seconds(replace(table[level], total_s=None), **{ELASTIC: duration_s})


def with_seconds(given: Budget, **seconds: float) -> Budget:
    """The budget with other lengths for the phases named (`warm_up` for "warm-up")."""
    wanted = {name.replace("_", "-"): value for name, value in seconds.items()}

    def changed(plan: Plan) -> Plan:
        return tuple((name, wanted.get(name, length)) for name, length in plan)

    return replace(given, opening=changed(given.opening), round=changed(given.round))
