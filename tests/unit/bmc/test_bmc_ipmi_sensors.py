"""Sensors over IPMI and events of sensor type 0x13 (critical interrupt), against OpenIPMI's ipmi_sim."""

from __future__ import annotations

from typing import Any

import pytest

from nodeprep.bmc import connect
from nodeprep.bmc.ipmi.sensors import sensors_of
from nodeprep.bmc.sensor_words import is_margin, place_of
from tests.unit.bmc.ipmi_sim import Bmc

# Source: ipmitool, include/ipmitool/ipmi_sel.h, sensor type 0x13.
CRITICAL_INTERRUPTS = {
    0x0: "Front panel diagnostic interrupt",
    0x1: "Bus timeout",
    0x2: "I/O NMI",
    0x3: "Software NMI",
    0x4: "PCI PERR",
    0x5: "PCI SERR",
    0x6: "EISA fail safe timeout",
    0x7: "Bus correctable error",
    0x8: "Bus uncorrectable error",
    0x9: "Fatal NMI",
    0xA: "Bus fatal error",
    0xB: "Bus degraded",
}


def test_sensors_with_places_units_and_one_that_gives_no_value(bmc: Bmc) -> None:
    with connect(bmc.target, operation_s=60) as controller:
        found = controller.sensors()
    assert [(one.name, one.place, one.kind, one.state, one.value) for one in found.sensors] == [
        ("Inlet Temp", "inlet", "temperature_c", "ok", 23.0),
        ("CPU1 VR Temp", "vrm", "temperature_c", "ok", 61.0),
        ("PS2 Temp", "psu", "temperature_c", "unreadable", None),
        ("Fan1", "fan", "fan_rpm", "ok", 96.0),
    ]
    assert found.sensors[2].detail
    assert (found.source, found.links, found.notes) == ("ipmi", (), ())


def test_each_critical_interrupt_is_told_by_type_and_offset(bmc: Bmc) -> None:
    with connect(bmc.target) as controller:
        mark = controller.log_mark()
        for offset in CRITICAL_INTERRUPTS:
            bmc.add_event(f"{0xA0 | offset:#04x} 0x17 0x08")
        entries = controller.log_since(mark).entries
    assert len(entries) == len(CRITICAL_INTERRUPTS)
    for (offset, words), entry in zip(CRITICAL_INTERRUPTS.items(), entries, strict=True):
        # The PCI address is in each maker's own form: the bytes stay.
        assert entry.text == f"Critical interrupt 0x02: {words} (asserted, data {0xA0 | offset:02x} 17 08)"


def read(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": "Temperature", "value": 30.0, "units": "°C", "health": 0, **more}


@pytest.mark.parametrize(
    ("entry", "state", "health"),
    [
        (read("A"), "ok", "OK"),
        (read("A", health=1), "ok", "Warning"),
        (read("A", health=2), "ok", "Critical"),
        (read("A", unavailable=True), "unreadable", ""),
        (read("A", value=None), "unreadable", ""),
        ({"name": "A", "type": "Temperature", "code": 0xCB, "words": "not present"}, "absent", ""),
        ({"name": "A", "type": "Temperature", "code": 0xC1, "words": "invalid"}, "unreadable", ""),
    ],
)
def test_what_was_not_read_has_no_value(entry: dict[str, Any], state: str, health: str) -> None:
    (sensor,) = sensors_of([entry]).sensors
    assert (sensor.state, sensor.health) == (state, health)
    assert (sensor.value is None) == (state != "ok")


def test_states_are_no_measurements_and_none_at_all_is_told() -> None:
    found = sensors_of([{"name": "Drive 0", "type": "Drive Slot", "value": None, "units": "", "health": 0}])
    assert found.sensors == ()
    assert found.notes


@pytest.mark.parametrize(
    ("name", "context", "place"),
    [
        ("System Board Inlet Temp", "SystemBoard", "inlet"),
        ("01-Inlet Ambient", "Intake", "inlet"),
        ("Ambient Temp", "Intake", "inlet"),
        ("15-Board Inlet", "Intake", "board"),
        ("54-P/S 1 Inlet", "Intake", "psu"),
        ("PSU2 Temp", "", "psu"),
        ("System Board Exhaust Temp", "SystemBoard", "outlet"),
        ("System Board GPU2 Temp", "SystemBoard", "gpu"),
        ("TEMP_GPU_SXM_1", "", "gpu"),
        ("HGX_GPU_0_TEMP_0", "GPU", "gpu"),
        ("CPU1 VCORE VR", "", "vrm"),
        ("VR_P0_TEMP", "Intake", "vrm"),
        ("P0_VDDCR_CPU", "", "vrm"),
        ("DIMMG0_TEMP", "Intake", "memory"),
        ("CPU0_TEMP", "Intake", "cpu"),
        ("MB_TEMP1", "Intake", "board"),
        ("CMOS Battery", "VoltageRegulator", "board"),
        ("OCP20_TEMP", "Intake", "other"),
        ("Sensor 7", "GPU", "gpu"),
        ("Fan 1A Tach", "", "fan"),
    ],
)
def test_places(name: str, context: str, place: str) -> None:
    assert place_of(name, context) == place


@pytest.mark.parametrize(
    ("name", "margin"), [("CPU 1 DTS", True), ("CPU0_DTS", True), ("CPU1 Margin", True), ("CPU1 Temp", False)]
)
def test_a_distance_to_a_limit_is_no_temperature(name: str, margin: bool) -> None:
    assert is_margin(name) == margin
