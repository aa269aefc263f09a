"""What a BMC measures, over Redfish: the old resources (Thermal, Power) and the new one (Sensors)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from nodeprep.bmc.failures import BmcLoginRefused, BmcUnreachable
from nodeprep.bmc.redfish.connection import Connection
from nodeprep.bmc.redfish.errors import Missing, NotTrusted, RedfishError
from nodeprep.bmc.redfish.resource import Resource
from nodeprep.bmc.redfish.service import CHASSIS, Service
from nodeprep.bmc.sensor_words import is_margin, place_of
from nodeprep.model.bmc import BmcPcieLink, BmcSensor, BmcSensors, SensorKind

# A GPU baseboard has a chassis for each GPU and each switch.
MOST_CHASSIS = 64
MOST_LINKS = 64
_HIGHEST = 1e9
_GENERATION = re.compile(r"Gen(\d)$", re.IGNORECASE)
# Source: DSP2046, Status.State: there is no part, or it is not to be used.
_NOT_THERE = frozenset({"absent", "disabled", "unavailableoffline"})
# Of Sensor.ReadingType.
_KINDS: Mapping[str, SensorKind] = {
    "temperature": "temperature_c",
    "power": "power_w",
    "voltage": "voltage_v",
    "current": "current_a",
    "rotational": "fan_rpm",
}


def read_sensors(connection: Connection, service: Service) -> BmcSensors:
    """All sensors of all chassis, and the PCIe links as far as the BMC tells them.

    Raises:
        BmcLoginRefused, NotTrusted: No use to go on.
        BmcUnreachable: Not one resource could be read.
    """
    notes: list[str] = []
    sensors: list[BmcSensor] = []
    links: list[BmcPcieLink] = []
    seen: set[str] = set()
    try:
        for chassis in _chassis(connection, service, notes):
            sensors += _of_chassis(connection, chassis, notes)
            links += _links(connection, chassis, notes, seen)
    except (BmcLoginRefused, NotTrusted):
        raise
    except BmcUnreachable as error:
        if not sensors:
            raise
        notes.append(f"what comes after it is not read: {error.message}")
    if not sensors:
        notes.append("the BMC tells of no sensor over Redfish")
    return BmcSensors(
        source="redfish",
        sensors=tuple(sensors),
        links=tuple(links),
        notes=tuple(notes),
        simulated=_simulated(service.system),
    )


def _chassis(connection: Connection, service: Service, notes: list[str]) -> Iterator[Resource]:
    try:
        members = connection.get(service.root.find_link("Chassis") or CHASSIS).members()
    except RedfishError as error:
        notes.append(error.message)
        members = ()
    if not members and service.chassis is not None:
        yield service.chassis
    if len(members) > MOST_CHASSIS:
        notes.append(f"only the first {MOST_CHASSIS} of {len(members)} chassis are read")
    for uri in members[:MOST_CHASSIS]:
        found = _read(connection, uri, notes)
        if found is not None:
            yield found


def _of_chassis(connection: Connection, chassis: Resource, notes: list[str]) -> list[BmcSensor]:
    found: list[BmcSensor] = []
    thermal = _linked(connection, chassis, "Thermal", notes)
    power = _linked(connection, chassis, "Power", notes)
    if thermal is not None:
        found += [_temperature(one) for one in _entries(thermal, "Temperatures")]
        found += [_fan(one) for one in _entries(thermal, "Fans")]
    if power is not None:
        found += _of_power(power)
    if not found:
        # New firmware has both; a sensor that is told twice would be two sensors.
        found += _of_collection(connection, chassis, notes)
    return found


def _of_power(power: Resource) -> Iterator[BmcSensor]:
    for place, supply in enumerate(_entries(power, "PowerSupplies"), start=1):
        name = _word(supply, "Name")
        if name.lower() in ("", "nil", "hpeserverpowersupply"):
            # Gigabyte has a list of "nil" without supplies, HPE calls all alike.
            name = f"PSU {place}"
        told = next(
            (key for key in ("PowerOutputWatts", "LastPowerOutputWatts") if supply.get(key) is not None), ""
        )
        yield _sensor(name, "power_w", supply, supply.get(told or "PowerOutputWatts"), context="PowerSupply")
    for voltage in _entries(power, "Voltages"):
        yield _sensor(_word(voltage, "Name"), "voltage_v", voltage, voltage.get("ReadingVolts"))


def _temperature(entry: Mapping[str, Any]) -> BmcSensor:
    name = _word(entry, "Name")
    kind: SensorKind = "margin_c" if is_margin(name) else "temperature_c"
    return _sensor(name, kind, entry, entry.get("ReadingCelsius"))


def _fan(entry: Mapping[str, Any]) -> BmcSensor:
    name = _word(entry, "Name") or _word(entry, "FanName")
    kind: SensorKind = "fan_percent" if _word(entry, "ReadingUnits").lower() == "percent" else "fan_rpm"
    value = entry.get("Reading", entry.get("ReadingRPM"))
    return _sensor(name, kind, entry, value, context="Fan")


def _of_collection(connection: Connection, chassis: Resource, notes: list[str]) -> Iterator[BmcSensor]:
    collection = _linked(connection, chassis, "Sensors", notes)
    if collection is None:
        return
    listed = collection.body.get("Members")
    for member in listed if isinstance(listed, list) else []:
        whole: Mapping[str, Any] = member if isinstance(member, Mapping) and "ReadingType" in member else {}
        if not whole:
            try:
                uri = collection.as_link(member, "Members")
            except RedfishError as error:
                notes.append(error.message)
                continue
            found = _read(connection, uri, notes)
            whole = found.body if found is not None else {}
        kind = _KINDS.get(_word(whole, "ReadingType").lower())
        if kind == "temperature_c" and is_margin(_word(whole, "Name")):
            kind = "margin_c"
        if _word(whole, "ReadingType").lower() == "percent" and _word(whole, "PhysicalContext") == "Fan":
            kind = "fan_percent"
        if kind is not None:
            yield _sensor(_word(whole, "Name") or _word(whole, "Id"), kind, whole, whole.get("Reading"))


def _sensor(
    name: str, kind: SensorKind, entry: Mapping[str, Any], value: Any, *, context: str = ""
) -> BmcSensor:
    place = place_of(name, _word(entry, "PhysicalContext") or context)
    status = entry.get("Status")
    status = status if isinstance(status, Mapping) else {}
    state, health = _word(status, "State"), _word(status, "Health")
    about: dict[str, Any] = {
        "name": name,
        "place": place,
        "kind": kind,
        "health": health,
        "upper_critical": _number(entry.get("UpperThresholdCritical")),
    }
    if state.lower() in _NOT_THERE:
        return BmcSensor(**about, state="absent", detail=state)
    number = _number(value)
    if value is None and kind == "voltage_v" and health and state.lower() == "enabled":
        return BmcSensor(**about, state="health_only", detail="the BMC tells its health and no value")
    if number is None:
        why = "the BMC gives no value" if value is None else f"its value is {str(value)[:40]!r}"
        return BmcSensor(**about, state="unreadable", detail=why)
    return BmcSensor(**about, state="ok", value=number)


def _links(
    connection: Connection, chassis: Resource, notes: list[str], seen: set[str]
) -> Iterator[BmcPcieLink]:
    collection = _linked(connection, chassis, "PCIeDevices", notes)
    if collection is None:
        return
    try:
        members = collection.members()
    except RedfishError as error:
        notes.append(error.message)
        return
    for uri in members:
        if uri in seen or len(seen) >= MOST_LINKS:
            continue
        seen.add(uri)
        device = _read(connection, uri, notes)
        interface = device.body.get("PCIeInterface") if device is not None else None
        if device is None or not isinstance(interface, Mapping):
            continue
        yield BmcPcieLink(
            device=uri.rstrip("/").rsplit("/", 1)[-1],
            name=_word(device.body, "Name"),
            generation=_generation(interface.get("PCIeType")),
            max_generation=_generation(interface.get("MaxPCIeType")),
            lanes=_whole(interface.get("LanesInUse")),
            max_lanes=_whole(interface.get("MaxLanes")),
        )


def _linked(connection: Connection, owner: Resource, name: str, notes: list[str]) -> Resource | None:
    try:
        link = owner.find_link(name)
    except RedfishError as error:
        notes.append(error.message)
        return None
    return _read(connection, link, notes) if link else None


def _read(connection: Connection, uri: str, notes: list[str]) -> Resource | None:
    try:
        return connection.get(uri)
    except Missing as error:
        notes.append(f"it is named and gone: {error.message}")
    except RedfishError as error:
        notes.append(error.message)
    return None


def _entries(resource: Resource, name: str) -> Iterator[Mapping[str, Any]]:
    listed = resource.body.get(name)
    return (entry for entry in (listed if isinstance(listed, list) else []) if isinstance(entry, Mapping))


def _word(body: Mapping[str, Any], name: str) -> str:
    value = body.get(name)
    return value.strip() if isinstance(value, str) else ""


def _number(value: Any) -> float | None:
    # JSON's numbers have no end, and Python's JSON takes NaN and Infinity, which are none.
    good = isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < _HIGHEST
    return float(value) if good else None


def _whole(value: Any) -> int | None:
    # 0 lanes: nothing was trained, or nothing was looked at.
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _generation(value: Any) -> int | None:
    found = _GENERATION.search(value) if isinstance(value, str) else None
    return int(found[1]) if found else None


def _simulated(system: Resource) -> bool:
    mark: Any = system.body
    for key in ("Oem", "Nodeprep", "Simulated"):
        mark = mark.get(key) if isinstance(mark, Mapping) else None
    return mark is True
