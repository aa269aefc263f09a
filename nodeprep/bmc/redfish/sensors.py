"""What a BMC measures, over Redfish: every chassis, by the old resources or else by the new ones."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from nodeprep.bmc.failures import BmcLoginRefused, BmcUnreachable
from nodeprep.bmc.redfish.connection import Connection
from nodeprep.bmc.redfish.errors import NotTrusted, RedfishError
from nodeprep.bmc.redfish.resource import Resource
from nodeprep.bmc.redfish.sensor_entries import linked, read, word
from nodeprep.bmc.redfish.sensors_new import listed_sensors, subsystem_sensors
from nodeprep.bmc.redfish.sensors_old import old_sensors
from nodeprep.bmc.redfish.service import CHASSIS, Service
from nodeprep.model.bmc import BmcPcieLink, BmcSensor, BmcSensors

# A GPU baseboard has a chassis for each GPU and each switch.
MOST_CHASSIS = 64
MOST_LINKS = 64
_GENERATION = re.compile(r"Gen(\d)$", re.IGNORECASE)


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
        found = read(connection, uri, notes)
        if found is not None:
            yield found


def _of_chassis(connection: Connection, chassis: Resource, notes: list[str]) -> list[BmcSensor]:
    # New firmware has all of them; a sensor that is told twice would be two sensors.
    for told in (old_sensors, listed_sensors, subsystem_sensors):
        found = list(told(connection, chassis, notes))
        if found:
            return found
    return []


def _links(
    connection: Connection, chassis: Resource, notes: list[str], seen: set[str]
) -> Iterator[BmcPcieLink]:
    collection = linked(connection, chassis, "PCIeDevices", notes)
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
        device = read(connection, uri, notes)
        interface = device.body.get("PCIeInterface") if device is not None else None
        if device is None or not isinstance(interface, Mapping):
            continue
        yield BmcPcieLink(
            device=uri.rstrip("/").rsplit("/", 1)[-1],
            name=word(device.body, "Name"),
            generation=_generation(interface.get("PCIeType")),
            max_generation=_generation(interface.get("MaxPCIeType")),
            lanes=_whole(interface.get("LanesInUse")),
            max_lanes=_whole(interface.get("MaxLanes")),
        )


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
