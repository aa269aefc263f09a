"""Sensors over IPMI, from what its process read. Source: IPMI 2.0, 35.14 Get Sensor Reading."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from nodeprep.bmc.sensor_words import is_margin, place_of
from nodeprep.model.bmc import BmcSensor, BmcSensors, SensorKind

# Requested sensor, data or record not present: an optional part that is not built in.
_NOT_PRESENT = 0xCB
_KINDS: Mapping[str, SensorKind] = {
    "°C": "temperature_c",
    "W": "power_w",
    "V": "voltage_v",
    "A": "current_a",
    "RPM": "fan_rpm",
}
# Source: pyghmi.constants.Health, bits.
_HEALTH = ((0b100, "Critical"), (0b010, "Critical"), (0b001, "Warning"))


def sensors_of(read: Iterable[Mapping[str, Any]]) -> BmcSensors:
    """The sensors that measure; those that only tell states (a drive is there) are left out."""
    found = [sensor for one in read if (sensor := _sensor(one)) is not None]
    notes = () if found else ("the BMC tells of no sensor that measures",)
    return BmcSensors(source="ipmi", sensors=tuple(found), notes=notes)


def _sensor(read: Mapping[str, Any]) -> BmcSensor | None:
    name = str(read.get("name", "")).strip()
    kind = _kind(read, name)
    if kind is None:
        return None
    about: dict[str, Any] = {"name": name, "place": place_of(name), "kind": kind}
    if "code" in read:
        if read["code"] == _NOT_PRESENT:
            return BmcSensor(**about, state="absent", detail="no such part")
        return BmcSensor(**about, state="unreadable", detail=str(read.get("words", "")))
    value = read.get("value")
    if read.get("unavailable") or not isinstance(value, (int, float)) or isinstance(value, bool):
        return BmcSensor(**about, state="unreadable", detail="the BMC says that it has no value now")
    bits = int(read.get("health", 0))
    health = next((word for bit, word in _HEALTH if bits & bit), "OK")
    return BmcSensor(**about, state="ok", value=float(value), health=health)


def _kind(read: Mapping[str, Any], name: str) -> SensorKind | None:
    units = str(read.get("units", "")).strip()
    kind = _KINDS.get(units)
    if kind is None and units == "%" and place_of(name) == "fan":
        return "fan_percent"
    if kind is None and not units:
        # No reading, so no unit: the type of the sensor has to do.
        kinds: Mapping[str, SensorKind] = {
            "Temperature": "temperature_c",
            "Voltage": "voltage_v",
            "Current": "current_a",
            "Fan": "fan_rpm",
        }
        kind = kinds.get(str(read.get("type", ""))) if "code" in read or read.get("unavailable") else None
    return "margin_c" if kind == "temperature_c" and is_margin(name) else kind
