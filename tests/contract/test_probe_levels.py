"""What a level must have done can be done within what the level is given."""

from __future__ import annotations

import pytest

from nodeprep.checks.probe_completed import LEAST, SIMULATED
from nodeprep.probe.levels import LEVELS, budget

# Start of the process and import of torch, before the first phase; seconds, the slowest seen.
START_S = 7.0


def test_every_level_that_runs_has_a_least() -> None:
    assert set(LEAST) == set(LEVELS) - {"soak"}


@pytest.mark.parametrize("level", LEAST)
def test_the_least_compute_phase_fits_into_the_budget(level: str) -> None:
    given = budget(level, "torch")
    assert given.total_s is not None
    opening = START_S + sum(seconds for _, seconds in given.opening)
    load_s = given.total_s - opening - given.cool_down_s
    beside = given.rounds_within(load_s) * given.beside_s
    assert LEAST[level].compute_s < load_s - beside


@pytest.mark.parametrize("level", LEAST)
def test_the_least_iterations_leave_ten_seconds_for_each(level: str) -> None:
    least, given = LEAST[level], budget(level, "torch")
    assert least.compared <= max(given.least_iterations, least.compute_s / 10)
    assert least.compared >= SIMULATED.compared


@pytest.mark.parametrize("level", LEAST)
def test_a_rehearsal_compares_more_than_its_least(level: str) -> None:
    # The first iteration is the reference.
    assert budget(level, "numpy").least_iterations - 1 >= SIMULATED.compared


def test_a_longer_level_means_more() -> None:
    for short, long in (("quick", "standard"), ("standard", "extended")):
        assert LEAST[short].compute_s < LEAST[long].compute_s
        assert LEAST[short].compared < LEAST[long].compared
