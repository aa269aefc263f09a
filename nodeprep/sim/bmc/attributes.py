"""The three ways in which BMCs write BIOS attributes into a resource."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

# What stands beside the attributes of a flat resource. Source: HPE iLO 4 (Gen9), bios/settings.
_NOT_ATTRIBUTES = frozenset(
    {"Actions", "AttributeRegistry", "Description", "Id", "Links", "Modified", "Name", "Oem", "Type", "links"}
)


@dataclass(frozen=True, slots=True)
class Shape:
    """One way to write them.

    Attributes:
        read: The attributes of a resource, by name.
        write: A resource with these attributes in place of its own.
        sent: The attributes in the body of a request; None when it has none.
    """

    name: str
    read: Callable[[Mapping[str, Any]], dict[str, Any]]
    write: Callable[[Mapping[str, Any], Mapping[str, Any]], dict[str, Any]]
    sent: Callable[[Mapping[str, Any]], dict[str, Any] | None]


def shape_of(bios: Mapping[str, Any]) -> Shape:
    """The way in which a Bios resource is written."""
    attributes = bios.get("Attributes")
    if isinstance(attributes, Mapping):
        values = attributes.values()
        return _OBJECTS if any(_is_object(value) for value in values) else _NESTED
    return _FLAT if len(_flat_names(bios)) > 3 else _NESTED


def _is_object(value: Any) -> bool:
    return isinstance(value, Mapping) and "current_value" in value


def _read_nested(body: Mapping[str, Any]) -> dict[str, Any]:
    attributes = body.get("Attributes")
    return dict(attributes) if isinstance(attributes, Mapping) else {}


def _write_nested(body: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    return {**body, "Attributes": dict(values)}


def _sent_nested(body: Mapping[str, Any]) -> dict[str, Any] | None:
    attributes = body.get("Attributes")
    return dict(attributes) if isinstance(attributes, Mapping) else None


def _read_objects(body: Mapping[str, Any]) -> dict[str, Any]:
    found = _read_nested(body)
    return {name: value["current_value"] if _is_object(value) else value for name, value in found.items()}


def _write_objects(body: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    old = _read_nested(body)
    new = {
        name: {**old[name], "current_value": value} if _is_object(old.get(name)) else value
        for name, value in values.items()
    }
    return {**body, "Attributes": new}


def _sent_objects(body: Mapping[str, Any]) -> dict[str, Any] | None:
    found = _sent_nested(body)
    if found is None:
        return None
    return {name: value["current_value"] if _is_object(value) else value for name, value in found.items()}


def _flat_names(body: Mapping[str, Any]) -> list[str]:
    return [
        name
        for name, value in body.items()
        if name not in _NOT_ATTRIBUTES and "@" not in name and not isinstance(value, Mapping | list)
    ]


def _read_flat(body: Mapping[str, Any]) -> dict[str, Any]:
    return {name: body[name] for name in _flat_names(body)}


def _write_flat(body: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    own = set(_flat_names(body))
    return {**{name: value for name, value in body.items() if name not in own}, **values}


def _sent_flat(body: Mapping[str, Any]) -> dict[str, Any]:
    # A nested body is accepted and does nothing. Source: HewlettPackard/python-ilorest-library#135.
    return _read_flat(body)


_NESTED = Shape("nested", _read_nested, _write_nested, _sent_nested)
_OBJECTS = Shape("objects", _read_objects, _write_objects, _sent_objects)
_FLAT = Shape("flat", _read_flat, _write_flat, _sent_flat)
