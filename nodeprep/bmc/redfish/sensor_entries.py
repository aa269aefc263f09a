"""One sensor, and one resource, out of what a BMC gives: nothing is taken for a number that is none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from nodeprep.bmc.redfish.connection import Connection
from nodeprep.bmc.redfish.errors import Missing, RedfishError
from nodeprep.bmc.redfish.resource import Resource
from nodeprep.bmc.sensor_words import is_margin, is_power_good, place_of
from nodeprep.model.bmc import BmcSensor, SensorKind

_HIGHEST = 1e9
# Source: DSP2046, Status.State: there is no part, or it is not to be used.
_NOT_THERE = frozenset({"absent", "disabled", "unavailableoffline"})


def sensor(
    name: str, kind: SensorKind, entry: Mapping[str, Any], value: Any, *, context: str = ""
) -> BmcSensor:
    """One sensor.

    Args:
        entry: The object that has its Status, PhysicalContext and limits.
        value: What is to be a number; None when the BMC gives none.
        context: PhysicalContext where the entry has none.
    """
    status = inner(entry, "Status")
    state = word(status, "State")
    about: dict[str, Any] = {
        "name": name,
        "place": place_of(name, word(entry, "PhysicalContext") or context),
        "kind": kind,
        "health": word(status, "Health"),
        "upper_critical": _upper_critical(entry),
    }
    if state.lower() in _NOT_THERE:
        return BmcSensor(**about, state="absent", detail=state)
    if value is None and kind == "voltage_v" and about["health"] and is_power_good(name):
        return BmcSensor(**about, state="health_only", detail="the BMC tells its health and no value")
    good = number(value)
    if good is None:
        why = "the BMC gives no value" if value is None else f"its value is {str(value)[:40]!r}"
        return BmcSensor(**about, state="unreadable", detail=why)
    return BmcSensor(**about, state="ok", value=good)


def temperature(name: str, entry: Mapping[str, Any], value: Any) -> BmcSensor:
    """A temperature, or a distance to a limit, by its name."""
    return sensor(name, "margin_c" if is_margin(name) else "temperature_c", entry, value)


def linked(connection: Connection, owner: Resource, name: str, notes: list[str]) -> Resource | None:
    """The resource that another one names; None, with a note, when it cannot be read."""
    try:
        link = owner.find_link(name)
    except RedfishError as error:
        notes.append(error.message)
        return None
    return read(connection, link, notes) if link else None


def members(connection: Connection, collection: Resource, notes: list[str]) -> Iterator[Resource]:
    """The members of a collection that can be read, whole in it or behind links."""
    listed = collection.body.get("Members")
    for member in listed if isinstance(listed, list) else []:
        if isinstance(member, Mapping) and len(member.keys() - {"@odata.id", "@odata.type"}) > 0:
            yield Resource(word(member, "@odata.id") or collection.uri, member)
            continue
        try:
            uri = collection.as_link(member, "Members")
        except RedfishError as error:
            notes.append(error.message)
            continue
        found = read(connection, uri, notes)
        if found is not None:
            yield found


def read(connection: Connection, uri: str, notes: list[str]) -> Resource | None:
    """A resource; None, with a note, when it cannot be read."""
    try:
        return connection.get(uri)
    except Missing as error:
        notes.append(f"it is named and gone: {error.message}")
    except RedfishError as error:
        notes.append(error.message)
    return None


def entries(resource: Resource, name: str) -> Iterator[Mapping[str, Any]]:
    """The objects of a list, without what else is in it."""
    listed = resource.body.get(name)
    return (entry for entry in (listed if isinstance(listed, list) else []) if isinstance(entry, Mapping))


def inner(body: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """An object in an object; empty when there is none."""
    value = body.get(name)
    return value if isinstance(value, Mapping) else {}


def word(body: Mapping[str, Any], name: str) -> str:
    """A text; empty when there is none."""
    value = body.get(name)
    return value.strip() if isinstance(value, str) else ""


def number(value: Any) -> float | None:
    """A number, or None."""
    # JSON's numbers have no end, and Python's JSON takes NaN and Infinity, which are none.
    good = isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < _HIGHEST
    return float(value) if good else None


def _upper_critical(entry: Mapping[str, Any]) -> float | None:
    # Source: DSP2046: in the old resources beside the value, in Sensor among its Thresholds.
    old = number(entry.get("UpperThresholdCritical"))
    return (
        old if old is not None else number(inner(inner(entry, "Thresholds"), "UpperCritical").get("Reading"))
    )
