"""Levels and their budgets."""

from __future__ import annotations

import pytest

from nodeprep.probe.levels import budget
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


def test_soak_is_refused_with_an_alternative():
    with pytest.raises(UsageProblem, match="not in this version") as caught:
        budget("soak", "torch")
    assert "extended" in caught.value.hint


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
