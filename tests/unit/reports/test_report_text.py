"""How values are written."""

from __future__ import annotations

import pytest

from nodeprep.model.reading import Reading
from nodeprep.reports import _text


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (None, ""),
        (True, "yes"),
        (False, "no"),
        (0, "0"),
        (0.0, "0"),
        (16, "16"),
        (1449, "1449"),
        (2164218347520, "2,164,218,347,520"),
        (651.0, "651"),
        (1.0374, "1.037"),
        (24.604, "24.6"),
        (0.000012, "1.2e-05"),
        (12345.6, "12,346"),
        (100.0, "100"),
        (float("nan"), "nan"),
        ("0x40", "0x40"),
    ],
)
def test_numbers(value, written):
    assert _text.number(value) == written


def test_a_missing_value_is_told_with_its_reason_never_as_a_number():
    assert _text.reading(Reading.error("NVML_ERROR_GPU_IS_LOST")) == "unreadable: NVML_ERROR_GPU_IS_LOST"
    assert _text.reading(Reading.not_supported("no such sensor")) == "not supported: no such sensor"
    assert _text.reading(Reading.ok(0)) == "0"


def test_times():
    assert _text.moment("2026-11-30T12:00:00+02:00") == "2026-11-30 10:00:00 UTC"
    assert _text.moment("yesterday") == "yesterday"
    assert _text.between("2026-11-30T10:00:00Z", "2026-11-30T10:04:12Z") == "4 min 12 s"
    assert _text.between("2026-11-30T10:00:00Z", "") == ""
    assert _text.duration(59.96) == "60.0 s"
    assert _text.duration(25330) == "7 h 02 min"


def test_addresses_lose_only_the_domain_that_says_nothing():
    assert _text.short_address("0000:17:00.0") == "17:00.0"
    assert _text.short_address("0001:17:00.0") == "0001:17:00.0"
    assert _text.short_address("node") == "node"


def test_links():
    assert _text.link(Reading.ok(16.0), Reading.ok(8)) == "Gen4 x8"
    assert _text.link(Reading.ok(12.0), Reading.ok(8)) == "12 GT/s x8"
    assert _text.link(Reading.error("ENODEV"), Reading.ok(8)) == "speed unreadable: ENODEV"
    assert _text.link(Reading.ok(16.0), Reading.error("ENODEV")) == "width unreadable: ENODEV"
