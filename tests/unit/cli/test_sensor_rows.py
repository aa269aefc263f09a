"""The worst of what a BMC measures, as `inspect` shows it to people."""

from __future__ import annotations

from typing import Any

import pytest

from nodeprep.cli import bios_sensors
from nodeprep.cli._output import Output
from nodeprep.cli._sensors import worst_rows
from nodeprep.model.bmc import BmcSensor, BmcSensors


def sensor(name: str, place: Any, kind: Any, value: float | None, **more: Any) -> BmcSensor:
    state = "unreadable" if value is None else "ok"
    return BmcSensor(**{"name": name, "place": place, "kind": kind, "state": state, "value": value, **more})


def rows(*sensors: BmcSensor) -> list[tuple[str, ...]]:
    return list(worst_rows(BmcSensors(source="ipmi", sensors=sensors)))


def test_the_hottest_and_the_slowest_are_shown_with_unit_and_limit() -> None:
    assert rows(
        sensor("GPU1", "gpu", "temperature_c", 61.0, health="OK"),
        sensor("GPU2", "gpu", "temperature_c", 84.0, upper_critical=95.0, health="OK"),
        sensor("Fan 1", "fan", "fan_rpm", 9000.0),
        sensor("Fan 2", "fan", "fan_rpm", 0.0),
    ) == [
        ("GPU", "84 °C (GPU2)", "95 °C", "2 of 2", "OK"),
        ("fans", "0 rpm (Fan 2)", "", "2 of 2", ""),
    ]


def test_what_could_not_be_read_is_counted_and_never_zero() -> None:
    assert rows(
        sensor("VR1", "vrm", "temperature_c", None),
        sensor("PSU 1", "psu", "power_w", None),
        sensor("PSU 2", "psu", "power_w", 640.0),
        sensor("PSU 3", "psu", "power_w", None, state="absent"),
    ) == [
        ("voltage regulators", "unreadable", "", "0 of 1", ""),
        ("supplies", "640 W (PSU 2)", "", "1 of 2", ""),
    ]


def test_a_sensor_that_is_ill_is_named_although_another_reads_more() -> None:
    ((_, worst, _, _, health),) = rows(
        sensor("PSU 1", "psu", "power_w", 900.0, health="OK"),
        sensor("PSU 2", "psu", "power_w", 12.0, health="Critical"),
    )
    assert (worst, health) == ("900 W (PSU 1)", "PSU 2 Critical")


def test_what_is_unreadable_is_counted_and_named_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    found = BmcSensors(
        source="redfish",
        sensors=(
            sensor("Inlet Temp", "inlet", "temperature_c", 25.0),
            sensor("GPU 1", "gpu", "temperature_c", None, detail="the BMC gives no value"),
            sensor("CPU1 VCCIN PG", "vrm", "voltage_v", None, state="health_only"),
        ),
    )
    bios_sensors._show(found, Output(json=False, quiet=False, verbose=False))
    said = capsys.readouterr().out
    assert "unreadable: 1 of 3 sensors: GPU 1" in said
    assert "health only" in said
