"""What waivers a verdict stands on, and that a certificate does not outlive them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, timezone

import pytest
from certify_samples import NOW, passed

from nodeprep.certify.waivers import described, expiry, summary, used
from nodeprep.model.policy import Waiver
from nodeprep.model.result import CheckResult

SOON = Waiver(check="width", owner="ops", until=date(2026, 12, 5), why="slot is x8")
LATER = Waiver(check="aer", owner="lab", until=date(2027, 1, 31), why="guest")


def waived(waiver: Waiver, subject: str = "node") -> CheckResult:
    return replace(passed(waiver.check, subject), status="SKIPPED", waiver=waiver, waived_status="FAIL")


def test_without_waivers_the_days_count() -> None:
    assert expiry(NOW, 90, [passed("a")]) == NOW + timedelta(days=90)


def test_the_earliest_used_waiver_ends_it_with_its_last_day() -> None:
    ends = expiry(NOW, 90, [passed("a"), waived(LATER), waived(SOON)])
    assert ends == datetime(2026, 12, 5, 23, 59, 59, tzinfo=UTC)


def test_days_that_end_before_the_waiver_count() -> None:
    assert expiry(NOW, 3, [waived(SOON)]) == NOW + timedelta(days=3)


def test_the_day_is_that_of_utc_wherever_the_controller_is() -> None:
    east = NOW.astimezone(timezone(timedelta(hours=9)))
    assert expiry(east, 90, [waived(SOON)]) == expiry(NOW, 90, [waived(SOON)])


@pytest.mark.parametrize("until", [date.max, date(3000, 1, 1)])
def test_a_waiver_for_ever_does_not_lengthen_it(until: date) -> None:
    assert expiry(NOW, 90, [waived(replace(SOON, until=until))]) == NOW + timedelta(days=90)


def test_each_used_waiver_is_told_once_with_what_it_covers() -> None:
    checks = [waived(SOON, "0000:17:00.0"), passed("a"), waived(LATER), waived(SOON, "0000:3b:00.0")]
    assert used(checks) == (SOON, LATER)
    assert described(checks) == (
        "width FAIL on 0000:17:00.0, 0000:3b:00.0: ops until 2026-12-05: slot is x8",
        "aer FAIL on node: lab until 2027-01-31: guest",
    )
    assert summary(checks) == "2 waivers by lab, ops"
    assert summary([passed("a")]) == ""
