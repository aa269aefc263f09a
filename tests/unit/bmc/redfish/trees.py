"""Small trees of resources, each with one vendor's ways."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

SYSTEM = "/redfish/v1/Systems/1"
BIOS = f"{SYSTEM}/Bios"
SETTINGS = f"{BIOS}/Settings"
REGISTRIES = "/redfish/v1/Registries"


def tree(
    attributes: Mapping[str, Any] | None = None,
    *,
    bios: Mapping[str, Any] | None = None,
    settings: Any = None,
    system: Mapping[str, Any] | None = None,
    more: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """One system with a BIOS; its settings resource is named when it is given."""
    body: dict[str, Any] = {"@odata.id": BIOS, "AttributeRegistry": "BiosAttributeRegistry.v1_0_0"}
    if attributes is not None:
        body["Attributes"] = attributes
    if settings is not None:
        body["@Redfish.Settings"] = {"SettingsObject": {"@odata.id": SETTINGS}}
    resources: dict[str, Any] = {
        "/redfish/v1/Systems": {"Members": [{"@odata.id": SYSTEM}]},
        SYSTEM: {"Id": "1", "Manufacturer": "Acme", "Bios": {"@odata.id": BIOS}, **(system or {})},
        BIOS: {**body, **(bios or {})},
        **(more or {}),
    }
    if isinstance(settings, dict):
        resources[SETTINGS] = settings
    return resources


def registry(*attributes: Mapping[str, Any], dependencies: Any = ()) -> dict[str, Any]:
    """An attribute registry."""
    entries = {"Attributes": list(attributes), "Dependencies": list(dependencies)}
    return {"Id": "BiosAttributeRegistry.v1_0_0", "Language": "en", "RegistryEntries": entries}


def enumeration(name: str, *values: str, **more: Any) -> dict[str, Any]:
    """An attribute; values as "name" or "name=display"."""
    listed = [
        dict(zip(("ValueName", "ValueDisplayName"), value.split("="), strict=False)) for value in values
    ]
    return {"AttributeName": name, "Type": "Enumeration", "Value": listed, "ReadOnly": False, **more}


def rule(
    target: str, aspect: str, value: Any, *conditions: str, terms: str = "", late: bool = False, **more: Any
) -> Any:
    """A dependency.

    Args:
        conditions: "Source EQU value".
        terms: AND or OR, between all of them.
        late: The term stands at the later condition of two (HPE, AMI) instead of the earlier (Lenovo).
    """
    listed = []
    for place, condition in enumerate(conditions):
        source, operator, wanted = condition.split(" ", 2)
        entry = {
            "MapFromAttribute": source,
            "MapFromCondition": operator,
            "MapFromProperty": "CurrentValue",
            "MapFromValue": wanted,
        }
        if terms and place != (0 if late else len(conditions) - 1):
            entry["MapTerms"] = terms
        listed.append(entry)
    inner = {"MapFrom": listed, "MapToAttribute": target, "MapToProperty": aspect, "MapToValue": value}
    return {"Type": "Map", "DependencyFor": target, "Dependency": inner, **more}
