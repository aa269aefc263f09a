"""Sensors over Redfish: old resources, the new one, and what cannot be read."""

from __future__ import annotations

from typing import Any

import pytest
from fake_redfish import FakeBmc
from trees import tree

from nodeprep.bmc.redfish.sensors import read_sensors
from nodeprep.bmc.redfish.service import read_service
from nodeprep.model.bmc import BmcSensors
from nodeprep.model.codec import decode, encode

CHASSIS = "/redfish/v1/Chassis"
ONE = f"{CHASSIS}/1"


def link(uri: str) -> dict[str, str]:
    return {"@odata.id": uri}


def measured(chassis: dict[str, Any], **resources: Any) -> BmcSensors:
    more = {CHASSIS: {"Members": [link(ONE)]}, ONE: chassis}
    more |= {f"{ONE}/{name}": body for name, body in resources.items()}
    bmc = FakeBmc(tree({"A": "x"}, more=more, system={"Oem": {"Nodeprep": {"Simulated": True}}}))
    with bmc.connection() as connection:
        found = read_sensors(connection, read_service(connection))
    assert decode(encode(found), BmcSensors, source="x") == found
    return found


def thermal(*temperatures: dict[str, Any], **more: Any) -> BmcSensors:
    return measured({"Thermal": link(f"{ONE}/Thermal")}, Thermal={"Temperatures": list(temperatures), **more})


def test_old_resources() -> None:
    found = measured(
        {"Thermal": link(f"{ONE}/Thermal"), "Power": link(f"{ONE}/Power"), "Sensors": link(f"{ONE}/Sensors")},
        Thermal={
            "Temperatures": [{"Name": "Inlet Temp", "ReadingCelsius": 25, "UpperThresholdCritical": 42}],
            "Fans": [
                {"FanName": "Fan 1", "Reading": 51, "ReadingUnits": "Percent"},
                {"Name": "Fan 2", "Reading": 9000, "ReadingUnits": "RPM", "Status": {"Health": "Warning"}},
            ],
        },
        Power={
            "PowerSupplies": [{"Name": "HpeServerPowerSupply", "LastPowerOutputWatts": 277}],
            "Voltages": [{"Name": "CPU1 VCORE VR", "ReadingVolts": 1.8}],
        },
        # Not read: the same sensors again.
        Sensors={"Members": [{"Name": "Inlet", "ReadingType": "Temperature", "Reading": 25}]},
    )
    assert [(one.name, one.place, one.kind, one.value) for one in found.sensors] == [
        ("Inlet Temp", "inlet", "temperature_c", 25.0),
        ("Fan 1", "fan", "fan_percent", 51.0),
        ("Fan 2", "fan", "fan_rpm", 9000.0),
        ("PSU 1", "psu", "power_w", 277.0),
        ("CPU1 VCORE VR", "vrm", "voltage_v", 1.8),
    ]
    assert found.sensors[0].upper_critical == 42.0
    assert found.sensors[2].health == "Warning"
    assert (found.simulated, found.notes) == (True, ())
    assert [one.name for one in found.of("fan", "fan_rpm")] == ["Fan 2"]


def test_the_new_resource_with_members_whole_or_as_links() -> None:
    gpu = {"Name": "GPU_1 Temp", "ReadingType": "Temperature", "Reading": 61.5, "PhysicalContext": "GPU"}
    found = measured(
        {"Sensors": link(f"{ONE}/Sensors")},
        Sensors={"Members": [gpu, link(f"{ONE}/psu"), link(f"{ONE}/humidity"), link(f"{ONE}/fan")]},
        psu={"Id": "PSU0_Power", "ReadingType": "Power", "Reading": 900},
        humidity={"Id": "H", "ReadingType": "Humidity", "Reading": 40},
        fan={"Name": "FAN1", "ReadingType": "Percent", "Reading": 30, "PhysicalContext": "Fan"},
    )
    assert [(one.name, one.place, one.kind, one.value) for one in found.sensors] == [
        ("GPU_1 Temp", "gpu", "temperature_c", 61.5),
        ("PSU0_Power", "psu", "power_w", 900.0),
        ("FAN1", "fan", "fan_percent", 30.0),
    ]


@pytest.mark.parametrize(
    ("entry", "state"),
    [
        ({"ReadingCelsius": None}, "unreadable"),
        ({}, "unreadable"),
        ({"ReadingCelsius": "25"}, "unreadable"),
        ({"ReadingCelsius": True}, "unreadable"),
        ({"ReadingCelsius": 10**400}, "unreadable"),
        ({"ReadingCelsius": 0, "Status": {"State": "Absent"}}, "absent"),
        ({"ReadingCelsius": 0, "Status": {"State": "Enabled"}}, "ok"),
    ],
)
def test_unreadable_is_apart_from_absent_and_neither_is_zero(entry: dict[str, Any], state: str) -> None:
    (sensor,) = thermal({"Name": "GPU 1", **entry}).sensors
    assert (sensor.state, sensor.place) == (state, "gpu")
    assert (sensor.value is None) == (state != "ok")


def test_a_margin_is_no_temperature() -> None:
    (sensor,) = thermal({"Name": "CPU 1 DTS", "ReadingCelsius": -51}).sensors
    assert (sensor.kind, sensor.value) == ("margin_c", -51.0)


def test_what_is_named_and_gone_is_noted() -> None:
    found = measured({"Thermal": link(f"{ONE}/Thermal"), "Power": link(f"{ONE}/Power")}, Power={})
    assert found.sensors == ()
    assert any("named and gone" in note and "/Thermal" in note for note in found.notes)
    assert any("no sensor" in note for note in found.notes)


@pytest.mark.parametrize("body", [{"Temperatures": None}, {"Temperatures": {"a": 1}}, {"Temperatures": [1]}])
def test_damaged_lists_are_no_sensors(body: dict[str, Any]) -> None:
    found = measured({"Thermal": link(f"{ONE}/Thermal")}, Thermal=body)
    assert (found.sensors, bool(found.notes)) == ((), True)


def test_links_are_told_as_far_as_the_bmc_does() -> None:
    def device(**interface: Any) -> dict[str, Any]:
        return {"Name": "NVIDIA L40", "PCIeInterface": interface}

    found = measured(
        {"PCIeDevices": link(f"{ONE}/PCIeDevices")},
        PCIeDevices={"Members": [link(f"{ONE}/{name}") for name in ("a", "b", "c", "gone")]},
        a=device(PCIeType="Gen4", MaxPCIeType="Gen5", LanesInUse=16, MaxLanes=16),
        b=device(PCIeType="", MaxPCIeType=None, LanesInUse=0, MaxLanes="x"),
        c={"Name": "no interface"},
    )
    assert [(one.device, one.generation, one.max_generation, one.lanes) for one in found.links] == [
        ("a", 4, 5, 16),
        ("b", None, None, None),
    ]
    assert any("/gone" in note for note in found.notes)


def test_without_chassis_there_is_a_note_and_no_error() -> None:
    bmc = FakeBmc(tree({"A": "x"}))
    with bmc.connection() as connection:
        found = read_sensors(connection, read_service(connection))
    assert found.sensors == ()
    assert found.notes


def test_subsystems_alone() -> None:
    sensors = f"{ONE}/Sensors"
    found = measured(
        {"ThermalSubsystem": link(f"{ONE}/Thermals"), "PowerSubsystem": link(f"{ONE}/Powers")},
        Thermals={"ThermalMetrics": link(f"{ONE}/Metrics"), "Fans": link(f"{ONE}/Fans")},
        Metrics={
            "TemperatureReadingsCelsius": [
                {"DeviceName": "GPU 1", "Reading": 61.5, "DataSourceUri": f"{sensors}/gpu1"},
                {"DeviceName": "CPU 1", "Reading": None, "DataSourceUri": {"@odata.id": f"{sensors}/cpu1"}},
                {"Reading": 24, "DataSourceUri": f"{sensors}/inlet", "PhysicalContext": "Intake"},
            ],
            "TemperatureSummaryCelsius": {
                # The same sensor once more, and one that the list leaves out.
                "Intake": {"Reading": 24, "DataSourceUri": f"{sensors}/inlet"},
                "Exhaust": {"Reading": 41, "DataSourceUri": {"@odata.id": f"{sensors}/outlet"}},
                "Internal": None,
            },
        },
        Fans={
            "Members": [link(f"{ONE}/fan1"), {"Id": "fan2", "Name": "Fan 2", "SpeedPercent": {"Reading": 40}}]
        },
        fan1={"Name": "Fan 1", "SpeedPercent": {"Reading": 35, "SpeedRPM": 7200}, "Status": {"Health": "OK"}},
        Powers={"PowerSupplies": link(f"{ONE}/Supplies")},
        Supplies={"Members": [link(f"{ONE}/psu1"), link(f"{ONE}/psu2"), link(f"{ONE}/psu3")]},
        psu1={"Name": "PSU 1", "Metrics": link(f"{ONE}/psu1m"), "Status": {"State": "Enabled"}},
        psu1m={"OutputPowerWatts": {"Reading": 1450.5}},
        psu2={"Name": "PSU 2", "Status": {"State": "Absent"}},
        psu3={"Name": "PSU 3", "Metrics": link(f"{ONE}/psu3m")},
    )
    assert [(one.name, one.place, one.kind, one.state, one.value) for one in found.sensors] == [
        ("GPU 1", "gpu", "temperature_c", "ok", 61.5),
        ("CPU 1", "cpu", "temperature_c", "unreadable", None),
        ("inlet", "inlet", "temperature_c", "ok", 24.0),
        ("Exhaust", "outlet", "temperature_c", "ok", 41.0),
        ("Fan 1", "fan", "fan_rpm", "ok", 7200.0),
        ("Fan 2", "fan", "fan_percent", "ok", 40.0),
        ("PSU 1", "psu", "power_w", "ok", 1450.5),
        ("PSU 2", "psu", "power_w", "absent", None),
        ("PSU 3", "psu", "power_w", "unreadable", None),
    ]
    assert any("psu3m" in note for note in found.notes)


def test_a_sensors_own_limit() -> None:
    inlet = {
        "Name": "Inlet",
        "ReadingType": "Temperature",
        "Reading": 24,
        "Thresholds": {"UpperCritical": {"Reading": 47}},
    }
    found = measured({"Sensors": link(f"{ONE}/Sensors")}, Sensors={"Members": [inlet]})
    assert [one.upper_critical for one in found.sensors] == [47.0]
