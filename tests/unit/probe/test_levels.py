"""Levels and their budgets."""

from __future__ import annotations

import dataclasses
import json

import pytest

from nodeprep.probe.levels import LEVELS, budget, budget_from
from nodeprep.probe.phases import PHASES
from nodeprep.probe.problem import UsageProblem


def test_quick_leaves_a_minute_some_room_and_half_of_it_for_compute():
    quick = budget("quick", "torch")
    assert quick.total_s is not None
    assert quick.total_s <= 55
    # With the slowest start measured (7.3 s) the compute phase is still the longest.
    before = 7.3 + sum(seconds for _, seconds in quick.opening)
    assert quick.total_s - before - quick.cool_down_s - quick.beside_s > 25


@pytest.mark.parametrize(("level", "minutes"), [("standard", 10), ("extended", 120)])
def test_longer_levels_last_what_they_say(level, minutes):
    assert budget(level, "torch").total_s == minutes * 60


def test_a_soak_is_days_of_legs():
    soak = budget("soak", "torch")
    assert soak.soak_s == 7 * 86400
    assert soak.total_s == 1800
    assert budget("soak", "torch", 3600.0).soak_s == 3600
    assert budget("soak", "torch", 3600.0).total_s == 1800


@pytest.mark.parametrize("level", ["standard", "extended", "soak"])
def test_longer_levels_walk_the_memory_again_when_it_is_hot(level):
    names = [name for name, _ in budget(level, "torch").round]
    assert names == ["compute", "transients", "hbm-walk"]
    total_s = budget(level, "torch").total_s
    assert total_s is not None
    assert budget(level, "torch").rounds_within(total_s) > 1


def test_several_gpus_give_time_to_what_they_do_together_and_keep_enough_to_compute():
    quick = budget("quick", "torch")
    totals = {count: quick.with_peers(count).total_s for count in (1, 2, 4, 8, 16)}
    assert totals[1] == totals[16] == quick.total_s
    # Two H200 took 9 s for it.
    assert quick.total_s - totals[2] == pytest.approx(9.4)
    assert totals[2] < totals[4] < totals[8] < quick.total_s
    assert budget("quick", "numpy").with_peers(8) == budget("quick", "numpy")


def test_every_phase_of_a_level_is_one():
    for backend in ("torch", "numpy"):
        for level in LEVELS:
            given = budget(level, backend)
            assert {name for name, _ in (*given.opening, *given.round)} <= set(PHASES)


def test_a_budget_survives_its_way_to_the_worker():
    given = budget("standard", "torch")
    assert budget_from(json.loads(json.dumps(dataclasses.asdict(given)))) == given


def test_unknown_level():
    with pytest.raises(UsageProblem, match="unknown level"):
        budget("fast", "torch")


def test_a_given_duration_is_kept_whatever_came_before():
    given = budget("quick", "torch", 5.0)
    assert given.seconds("compute") == 5.0
    assert given.total_s is None


@pytest.mark.parametrize("duration", [0, -1, 1e9])
def test_durations_that_make_no_sense(duration):
    with pytest.raises(UsageProblem, match="--duration-s"):
        budget("quick", "torch", duration)
