"""Summaries."""

from __future__ import annotations

import pytest

from nodeprep.probe.stats import stats_reading, summary


def test_summary_by_hand():
    assert summary([4.0, 1.0, 3.0, 2.0]) == {
        "count": 4,
        "min": 1.0,
        "mean": 2.5,
        "median": 2.5,
        "p95": 4.0,
        "max": 4.0,
    }


def test_p95_is_the_nearest_rank():
    assert summary([float(n) for n in range(1, 101)])["p95"] == 95.0
    assert summary([float(n) for n in range(1, 21)])["p95"] == 19.0


def test_median_of_an_odd_count():
    assert summary([9.0, 1.0, 5.0])["median"] == 5.0


def test_no_values_are_an_error_with_its_reason():
    assert stats_reading([], "never reached") == {"state": "error", "detail": "never reached"}


def test_one_value():
    assert stats_reading([2.0], "")["value"]["p95"] == pytest.approx(2.0)
