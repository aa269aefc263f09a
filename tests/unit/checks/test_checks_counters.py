"""Growth of counters: what cannot be known is never zero."""

from __future__ import annotations

import pytest

from nodeprep.checks._counters import DEVICE, grown, growth, growth_where_counted
from nodeprep.model.reading import Reading, Unreadable

NONE: Reading[int] = Reading.not_supported("no such field")
BROKEN: Reading[int] = Reading.error("lost")


def test_growth_is_what_came_in_between() -> None:
    assert grown(3, 10, "the counter", DEVICE) == 7
    assert growth(Reading.ok(3), Reading.ok(3), "the counter") == 0
    assert growth_where_counted(Reading.ok(0), Reading.ok(5), "the counter") == 5


def test_a_counter_that_went_back_says_what_set_it_back() -> None:
    with pytest.raises(Unreadable, match="the counter went back from 7 to 2: the device was made anew"):
        grown(7, 2, "the counter", DEVICE)
    with pytest.raises(Unreadable, match="the driver was reloaded"):
        growth_where_counted(Reading.ok(7), Reading.ok(2), "the counter")


def test_only_a_part_that_never_counts_may_lack_the_counter() -> None:
    assert growth_where_counted(NONE, NONE, "the counter") is None
    for old, new in ((NONE, Reading.ok(1)), (Reading.ok(1), NONE), (NONE, BROKEN), (BROKEN, BROKEN)):
        with pytest.raises(Unreadable):
            growth_where_counted(old, new, "the counter")
    with pytest.raises(Unreadable, match="not supported"):
        growth(NONE, NONE, "the counter")
