"""Each phase: what it asks of the backend, what it tells, and what the parent makes of it."""

from __future__ import annotations

import dataclasses
import time
from typing import Any

import pytest

from nodeprep.probe import workload
from nodeprep.probe.backends import Bursts, MemoryFault, MemoryRates, MemoryWalk
from nodeprep.probe.levels import budget
from nodeprep.probe.phases import PHASES, Assignment, Stage, View
from nodeprep.probe.session import Session
from nodeprep.probe.turns import Turns

TINY = workload.load("tiny")
LIMIT = {"state": "ok", "value": 700.0}


def ok(value: Any) -> dict[str, Any]:
    return {"state": "ok", "value": value}


class Backend:
    """Only what the memory and transient phases ask for."""

    burst_samples_per_s = 20.0

    def __init__(self) -> None:
        self.copy_gbps = [ok(4200.0)]
        self.walked: list[MemoryWalk] = []
        self.waves: list[tuple[float, float, int]] = []

    def memory_rates(self, seconds: float) -> MemoryRates:
        return MemoryRates(self.copy_gbps.pop(0), ok(4400.0), ok(4600.0), ok(4814.0))

    def walk_memory(self, seconds: float) -> MemoryWalk:
        return self.walked.pop(0)

    def bursts(self, period_s: float, duty: float, count: int) -> Bursts:
        self.waves.append((period_s, duty, count))
        return Bursts(count, 10 * count, count, 0)


def walk(walked: int, *faults: MemoryFault, gbps: float = 1000.0) -> MemoryWalk:
    names = ("address", "checkerboard", "inverse", "random")
    passes, rates = dict.fromkeys(names, 1), dict.fromkeys(names, gbps)
    return MemoryWalk(walked, walked + 10, walked + 20, passes, rates, len(faults), faults)


def stage(backend: Any) -> tuple[Stage, list[dict[str, Any]]]:
    said: list[dict[str, Any]] = []
    assignment = Assignment(TINY, budget("quick", "numpy"), 0.0)
    return Stage(backend, assignment, lambda **message: said.append(message), Turns("", "", ())), said


def document(name: str, said: list[dict[str, Any]], view: View | None = None) -> Any:
    """What the parent makes of the messages."""
    part = PHASES[name].part(TINY)
    for message in said:
        part.takes()[message["kind"]](message)
    return part.document(view or View(LIMIT, lambda *_: []))


def run(name: str, backend: Backend, seconds: float = 7.0, rounds: int = 1) -> list[dict[str, Any]]:
    made, said = stage(backend)
    phase = PHASES[name].run
    assert phase is not None
    for number in range(rounds):
        made.round = number + 1
        phase(made, seconds)
    return said


def test_every_phase_has_words_for_the_progress_and_an_answer_when_it_was_not_reached() -> None:
    for name, phase in PHASES.items():
        assert phase.words
        readings = [value for value in document(name, []).values() if isinstance(value, dict)]
        assert all(reading.get("state") != "ok" for reading in readings)


def test_no_two_phases_take_the_same_message() -> None:
    kinds = [kind for phase in PHASES.values() for kind in phase.part(TINY).takes()]
    assert len(kinds) == len(set(kinds))


def test_of_memory_rates_the_slowest_round_counts() -> None:
    backend = Backend()
    backend.copy_gbps = [ok(4200.0), ok(3900.0)]
    found = document("hbm-bandwidth", run("hbm-bandwidth", backend, rounds=2))["hbm_bandwidth"]["value"]
    assert found["copy_gbps"] == ok(3900.0)


def test_a_rate_unreadable_in_one_round_stays_so() -> None:
    backend = Backend()
    lost = {"state": "error", "detail": "no memory"}
    backend.copy_gbps = [ok(4200.0), lost]
    found = document("hbm-bandwidth", run("hbm-bandwidth", backend, rounds=2))["hbm_bandwidth"]["value"]
    assert found["copy_gbps"] == lost


def test_walks_of_all_rounds_add_up_and_the_largest_says_how_far_they_went() -> None:
    fault = MemoryFault(64, "random", "aa", "ab", True)
    backend = Backend()
    backend.walked = [walk(1000), walk(600, fault, gbps=900.0)]
    found = document("hbm-walk", run("hbm-walk", backend, rounds=2))["hbm_walk"]["value"]
    assert (found["walked_bytes"], found["walks"], found["errors"]) == (1000, 2, 1)
    assert found["patterns"]["random"] == {"passes": 2, "gbps": 900.0}
    assert [one["round"] for one in found["faults"]] == [2]


def test_faults_of_a_broken_memory_are_bounded() -> None:
    fault = MemoryFault(64, "random", "aa", "ab", True)
    backend = Backend()
    backend.walked = [walk(1000, *[fault] * 60) for _ in range(3)]
    found = document("hbm-walk", run("hbm-walk", backend, rounds=3))["hbm_walk"]["value"]
    assert (found["errors"], len(found["faults"])) == (180, 100)


def test_periods_get_their_share_of_the_time_out_of_step_with_the_sensor() -> None:
    backend = Backend()
    run("transients", backend, seconds=8.0)
    assert [(period, count) for period, _, count in backend.waves] == [
        (pytest.approx(1.0037), 3),
        (pytest.approx(0.2537), 12),
        (pytest.approx(0.0537), 33),
    ]


def test_a_period_that_does_not_fit_is_left_out() -> None:
    backend = Backend()
    run("transients", backend, seconds=2.2)
    assert [round(period, 2) for period, _, _ in backend.waves] == [0.25, 0.05]


def wave(period_s: float, start_s: float, end_s: float, **more: Any) -> dict[str, Any]:
    base = {"kind": "bursts", "t": end_s, "start_s": start_s, "period_s": period_s, "duty": 0.5, "bursts": 8}
    return {**base, "compared": 8, "mismatches": 0, "least_samples_per_s": 20.0, **more}


def seen(every_s: float) -> View:
    """A square wave of 1 s between 100 and 900 W, sampled so often; the first period is still at 1500 W."""

    def values(column: str, start_s: float, end_s: float) -> list[tuple[float, float]]:
        assert column == "power_fast_w"
        times = [n * every_s for n in range(int(60 / every_s)) if start_s <= n * every_s <= end_s]
        return [(t, 1500.0 if t < 11.0 else 900.0 if t % 1.0 < 0.5 else 100.0) for t in times]

    return View(LIMIT, values)


def test_peak_and_trough_are_of_the_limit_and_the_first_period_does_not_count() -> None:
    found = document("transients", [wave(1.0, 10.0, 20.0)], seen(0.02))["transients"]["value"]
    power = found["periods"][0]["power"]["value"]
    assert (power["peak_w"], power["trough_w"]) == (900.0, 100.0)
    assert power["peak_of_limit"] == pytest.approx(900 / 700)
    assert power["trough_of_limit"] == pytest.approx(100 / 700)


def test_power_sampled_too_seldom_is_an_error() -> None:
    found = document("transients", [wave(1.0, 10.0, 20.0)], seen(0.2))["transients"]["value"]
    assert found["periods"][0]["power"]["state"] == "error"
    assert "too seldom" in found["periods"][0]["power"]["detail"]


def test_without_a_limit_there_is_no_ratio() -> None:
    blind = View({"state": "error", "detail": "GPU is lost"}, seen(0.02).values)
    found = document("transients", [wave(1.0, 10.0, 20.0)], blind)["transients"]["value"]
    assert "GPU is lost" in found["periods"][0]["power"]["detail"]


def test_a_planned_period_that_never_came_is_an_error_and_not_left_out() -> None:
    said = run("transients", Backend(), seconds=8.0)
    planned = next(message for message in said if message["kind"] == "bursts-planned")
    found = document("transients", [planned, wave(1.0, 10.0, 20.0)], seen(0.02))["transients"]["value"]
    states = [(one["period_s"], one["bursts"], one["power"]["state"]) for one in found["periods"]]
    assert states == [(1.0, 8, "ok"), (0.25, 0, "error"), (0.05, 0, "error")]


def test_waves_of_all_rounds_are_one_per_period_and_mismatches_add_up() -> None:
    said = [wave(1.0, 10.0, 20.0), wave(0.25, 20.0, 22.0), wave(1.0, 40.0, 50.0, mismatches=2)]
    found = document("transients", said, seen(0.02))["transients"]["value"]
    assert [(one["period_s"], one["bursts"]) for one in found["periods"]] == [(1.0, 16), (0.25, 8)]
    assert (found["bursts_compared"], found["mismatch_count"]) == (24, 2)


def test_the_fall_begins_with_the_load() -> None:
    def values(column: str, start_s: float, end_s: float) -> list[tuple[float, float]]:
        assert (start_s, end_s) == (99.0, 105.0)
        return [(99.5, 60.0), (100.5, 56.0), (101.5, 50.0), (104.9, 40.0)]

    view = View(LIMIT, values, cool_down=(100.0, 105.0))
    found = document("cool-down", [], view)["cool_down"]["value"]
    assert found["temperature_c"]["value"] == {"first": 60.0, "last": 40.0, "half_s": 1.5}
    assert found["seconds"] == 5.0


class Walker(Backend):
    """Enough of a backend for a session; counts what it was asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return lambda *_: self.asked.append(name)


def test_a_session_walks_the_levels_list_and_repeats_the_round(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[tuple[str, float]] = []
    for name, phase in PHASES.items():
        monkeypatch.setitem(
            PHASES, name, dataclasses.replace(phase, run=lambda _s, seconds, n=name: ran.append((n, seconds)))
        )
    plan = dataclasses.replace(
        budget("quick", "torch"),
        total_s=100.0,
        cool_down_s=9.0,
        opening=(("copies", 1.0),),
        round=(("compute", 30.0), ("hbm-walk", 5.0)),
    )
    said: list[dict[str, Any]] = []
    assignment = Assignment(TINY, plan, time.monotonic())
    backend: Any = Walker()
    Session(backend, assignment, lambda **message: said.append(message), Turns("", "", ())).run()
    # 90 s are left: three rounds of 30 s, in each of which compute takes what the walk leaves.
    assert [name for name, _ in ran] == ["copies", *["compute", "hbm-walk"] * 3]
    assert ran[1][1] == pytest.approx(25.0, abs=0.5)
    assert [m["round"] for m in said if m["kind"] == "phase"] == [1, 1, 1, 2, 2, 3, 3]
    assert said[-1]["kind"] == "done"
