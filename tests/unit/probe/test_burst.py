"""Bursts: where in a period the model rests, and for how long."""

from __future__ import annotations

import pytest

from nodeprep.probe import burst


@pytest.fixture
def clock(monkeypatch):
    """A clock that only resting moves, and the rests."""
    now = [100.0]
    monkeypatch.setattr(burst.time, "monotonic", lambda: now[0])
    rests: list[float] = []

    def idle(seconds: float) -> None:
        rests.append(seconds)
        now[0] += seconds

    return now, rests, idle


def test_within_the_load_part_nothing_rests(clock):
    now, rests, idle = clock
    load = burst.Burst(0.5, 2.0, idle)
    now[0] += 0.9
    load.rest()
    assert rests == []


def test_after_it_the_rest_of_the_period_is_waited_for(clock):
    now, rests, idle = clock
    load = burst.Burst(0.5, 2.0, idle)
    load.begin()
    now[0] += 1.25
    load.rest()
    assert rests == [0.75]
    assert load.rested_s == pytest.approx(0.75)
    # A new period has begun.
    load.rest()
    assert rests == [0.75]
    load.begin()
    assert load.rested_s == 0


@pytest.mark.parametrize(("duty", "period_s"), [(1.0, 0.0), (1.0, 3.0)])
def test_without_a_pause_there_is_none(clock, duty, period_s):
    now, rests, idle = clock
    load = burst.Burst(duty, period_s, idle)
    assert not load.active
    now[0] += 2.9
    load.rest()
    assert rests == []
