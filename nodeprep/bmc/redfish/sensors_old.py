"""A chassis's old resources: Thermal and Power, deprecated since 2020.4 and still what most BMCs have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from nodeprep.bmc.redfish.connection import Connection
from nodeprep.bmc.redfish.resource import Resource
from nodeprep.bmc.redfish.sensor_entries import entries, linked, sensor, temperature, word
from nodeprep.model.bmc import BmcSensor, SensorKind


def old_sensors(connection: Connection, chassis: Resource, notes: list[str]) -> Iterator[BmcSensor]:
    """What Thermal and Power list."""
    thermal = linked(connection, chassis, "Thermal", notes)
    power = linked(connection, chassis, "Power", notes)
    if thermal is not None:
        for entry in entries(thermal, "Temperatures"):
            yield temperature(word(entry, "Name"), entry, entry.get("ReadingCelsius"))
        for entry in entries(thermal, "Fans"):
            yield _fan(entry)
    if power is not None:
        yield from _of_power(power)


def _of_power(power: Resource) -> Iterator[BmcSensor]:
    for place, supply in enumerate(entries(power, "PowerSupplies"), start=1):
        name = word(supply, "Name")
        if name.lower() in ("", "nil", "hpeserverpowersupply"):
            # Gigabyte has a list of "nil" without supplies, HPE calls all alike.
            name = f"PSU {place}"
        told = next(
            (key for key in ("PowerOutputWatts", "LastPowerOutputWatts") if supply.get(key) is not None), ""
        )
        yield sensor(name, "power_w", supply, supply.get(told or "PowerOutputWatts"), context="PowerSupply")
    for voltage in entries(power, "Voltages"):
        yield sensor(word(voltage, "Name"), "voltage_v", voltage, voltage.get("ReadingVolts"))


def _fan(entry: Mapping[str, Any]) -> BmcSensor:
    name = word(entry, "Name") or word(entry, "FanName")
    kind: SensorKind = "fan_percent" if word(entry, "ReadingUnits").lower() == "percent" else "fan_rpm"
    value = entry.get("Reading", entry.get("ReadingRPM"))
    return sensor(name, kind, entry, value, context="Fan")
