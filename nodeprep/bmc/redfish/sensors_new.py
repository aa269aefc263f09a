"""A chassis's new resources: Sensors or, where a BMC has none, ThermalSubsystem and PowerSubsystem."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from nodeprep.bmc.redfish.connection import Connection
from nodeprep.bmc.redfish.resource import Resource
from nodeprep.bmc.redfish.sensor_entries import (
    entries,
    inner,
    linked,
    members,
    number,
    sensor,
    temperature,
    word,
)
from nodeprep.bmc.sensor_words import is_margin
from nodeprep.model.bmc import BmcSensor, SensorKind

# Of Sensor.ReadingType.
_KINDS: Mapping[str, SensorKind] = {
    "temperature": "temperature_c",
    "power": "power_w",
    "voltage": "voltage_v",
    "current": "current_a",
    "rotational": "fan_rpm",
}


def listed_sensors(connection: Connection, chassis: Resource, notes: list[str]) -> Iterator[BmcSensor]:
    """What the collection Sensors lists."""
    collection = linked(connection, chassis, "Sensors", notes)
    for one in members(connection, collection, notes) if collection is not None else ():
        body = one.body
        reading = word(body, "ReadingType").lower()
        kind = _KINDS.get(reading)
        if kind == "temperature_c" and is_margin(word(body, "Name")):
            kind = "margin_c"
        if reading == "percent" and word(body, "PhysicalContext") == "Fan":
            kind = "fan_percent"
        if kind is not None:
            yield sensor(word(body, "Name") or word(body, "Id"), kind, body, body.get("Reading"))


def subsystem_sensors(connection: Connection, chassis: Resource, notes: list[str]) -> Iterator[BmcSensor]:
    """What ThermalSubsystem and PowerSubsystem tell: excerpts, without the sensors' own limits and health."""
    thermal = linked(connection, chassis, "ThermalSubsystem", notes)
    if thermal is not None:
        metrics = linked(connection, thermal, "ThermalMetrics", notes)
        if metrics is not None:
            yield from _temperatures(metrics)
        fans = linked(connection, thermal, "Fans", notes)
        for fan in members(connection, fans, notes) if fans is not None else ():
            yield _fan(fan.body)
    power = linked(connection, chassis, "PowerSubsystem", notes)
    supplies = linked(connection, power, "PowerSupplies", notes) if power is not None else None
    for place, supply in enumerate(members(connection, supplies, notes) if supplies is not None else (), 1):
        metrics = linked(connection, supply, "Metrics", notes)
        output = inner(metrics.body, "OutputPowerWatts") if metrics is not None else {}
        name = word(supply.body, "Name") or f"PSU {place}"
        yield sensor(name, "power_w", supply.body, output.get("Reading"), context="PowerSupply")


def _temperatures(metrics: Resource) -> Iterator[BmcSensor]:
    told: set[str] = set()
    for entry in entries(metrics, "TemperatureReadingsCelsius"):
        source = _source(entry)
        told.add(source)
        name = word(entry, "DeviceName") or source.rsplit("/", 1)[-1]
        yield temperature(name, entry, entry.get("Reading"))
    # Some list a sensor in the summary alone.
    summary = inner(metrics.body, "TemperatureSummaryCelsius")
    for place in ("Intake", "Exhaust", "Ambient", "Internal"):
        entry = inner(summary, place)
        source = _source(entry)
        if entry and (not source or source not in told):
            yield temperature(place, {"PhysicalContext": place, **entry}, entry.get("Reading"))


def _fan(fan: Mapping[str, Any]) -> BmcSensor:
    speed = inner(fan, "SpeedPercent")
    name = word(fan, "Name") or word(fan, "Id")
    if number(speed.get("SpeedRPM")) is not None:
        return sensor(name, "fan_rpm", fan, speed.get("SpeedRPM"), context="Fan")
    return sensor(name, "fan_percent", fan, speed.get("Reading"), context="Fan")


def _source(entry: Mapping[str, Any]) -> str:
    # A URI by DSP2046; newer iDRACs give an object with @odata.id.
    return (word(entry, "DataSourceUri") or word(inner(entry, "DataSourceUri"), "@odata.id")).rstrip("/")
