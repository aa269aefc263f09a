"""Full load and none in turn: what a power supply sees of a model that waits for its data."""

from __future__ import annotations

from typing import Any, Dict, List, Sequence, Set, Tuple

from ...node import reading
from ..stats import summary
from ..workload import Workload
from ._phase import Document, Part, Phase, Stage, Take, View, not_reached

# Periods in seconds, with their shares of the phase's time. Source: nodeprep's own. 1 s is about the pace of
# a batch, 50 ms that of a single image; at 0.25 s an H200 drew 1.39 times its limit (measured).
PERIODS_S = {1.0: 0.39, 0.25: 0.40, 0.05: 0.21}
# Each period is made so much longer. The driver of an H200 renews its instantaneous power every 100 ms
# (measured: 8 to 10 changes a second), and a wave in step with that shows it the same instant for ever: at
# exactly 50 ms three runs saw peaks of 277, 450 and 846 W. Out of step, every part of the wave comes by.
_OUT_OF_STEP_S = 0.0037
DUTY = 0.5
# A period of which fewer fit into its share is left out: one burst is no wave.
LEAST_BURSTS = 3
# The first period starts from whatever was before.
_SETTLING_PERIODS = 1


def _run(stage: Stage, seconds: float) -> None:
    counts = {period_s: int(seconds * share / period_s) for period_s, share in PERIODS_S.items()}
    planned = {period_s: count for period_s, count in counts.items() if count >= LEAST_BURSTS}
    stage.send(kind="bursts-planned", periods_s=list(planned))
    for period_s, count in planned.items():
        start = stage.now()
        done = stage.backend.bursts(period_s + _OUT_OF_STEP_S, DUTY, count)
        stage.send(
            kind="bursts",
            t=stage.now(),
            start_s=start,
            period_s=period_s,
            duty=DUTY,
            bursts=done.bursts,
            compared=done.compared,
            mismatches=done.mismatches,
            least_samples_per_s=stage.backend.burst_samples_per_s,
        )


class _Part(Part):
    def __init__(self, workload: Workload) -> None:
        super().__init__(workload)
        self._waves: List[Dict[str, Any]] = []
        self._planned: Set[float] = set()

    def takes(self) -> Dict[str, Take]:
        return {"bursts": self._waves.append, "bursts-planned": self._plan}

    def _plan(self, message: Dict[str, Any]) -> None:
        self._planned.update(message["periods_s"])

    def document(self, view: View) -> Document:
        """For each period what telemetry saw in all rounds together; one that never came is an error."""
        if not self._waves:
            return {"transients": not_reached()}
        waves: Dict[float, List[Dict[str, Any]]] = {period_s: [] for period_s in self._planned}
        for wave in self._waves:
            waves.setdefault(wave["period_s"], []).append(wave)
        found = {
            "periods": [_period(p, waves[p], view) for p in sorted(waves, reverse=True)],
            "bursts_compared": sum(wave["compared"] for wave in self._waves),
            "mismatch_count": sum(wave["mismatches"] for wave in self._waves),
        }
        return {"transients": reading.ok(found)}


def _period(period_s: float, waves: Sequence[Dict[str, Any]], view: View) -> Dict[str, Any]:
    return {
        "period_s": period_s,
        "duty": waves[0]["duty"] if waves else DUTY,
        "bursts": sum(wave["bursts"] for wave in waves),
        "power": _power(waves, view) if waves else reading.error("the load ended before this period"),
    }


def _power(waves: Sequence[Dict[str, Any]], view: View) -> Dict[str, Any]:
    samples: List[Tuple[float, float]] = []
    seconds = 0.0
    for wave in waves:
        start = wave["start_s"] + _SETTLING_PERIODS * wave["period_s"]
        samples.extend(view.values("power_fast_w", start, wave["t"]))
        seconds += wave["t"] - start
    if view.enforced_limit_w["state"] != "ok":
        return reading.error("the power limit is unreadable: %s" % view.enforced_limit_w["detail"])
    if len(samples) < waves[0]["least_samples_per_s"] * seconds:
        why = view.trouble or "%d samples of instantaneous power in %.1f s" % (len(samples), seconds)
        return reading.error("sampled too seldom to see the extremes: %s" % why)
    limit: float = view.enforced_limit_w["value"]
    drawn = summary([watts for _, watts in samples])
    return reading.ok(
        {
            "samples": len(samples),
            "peak_w": drawn["max"],
            "trough_w": drawn["min"],
            "mean_w": drawn["mean"],
            "peak_of_limit": drawn["max"] / limit,
            "trough_of_limit": drawn["min"] / limit,
        }
    )


PHASE = Phase(
    name="transients",
    words="full load and none in turn, with periods of 1 s, 250 ms and 50 ms",
    run=_run,
    part=_Part,
)
