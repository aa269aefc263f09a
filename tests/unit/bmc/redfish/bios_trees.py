"""Small dumps, each with one vendor's ways to take BIOS settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nodeprep.sim.bmc import Dump

ROOT = "/redfish/v1"
SYSTEM = f"{ROOT}/Systems/1"
BIOS = f"{SYSTEM}/Bios"
MANAGER = f"{ROOT}/Managers/1"
REGISTRY = f"{ROOT}/Registries/BiosAttributeRegistry"
RESET = f"{SYSTEM}/Actions/ComputerSystem.Reset"
TYPES = ("On", "ForceOff", "GracefulShutdown", "ForceRestart", "GracefulRestart")
VALUES: Mapping[str, Any] = {
    "SysProfile": "PerfOptimized",
    "PcieAspmL1": "Enabled",
    "IommuSupport": "Enabled",
    "SriovGlobalEnable": "Enabled",
    "XhciHandOff": "Enabled",
    "PciSlot1LinkSpeed": "Auto",
    "PciSlot2LinkSpeed": "Auto",
    "AssetTag": "rack 7",
}
_ON_OFF = ("Enabled", "Disabled")
_SETTINGS = {"Lenovo": "Pending", "AMI": "SD", "Supermicro": "SD"}


def small(
    maker: str = "Acme",
    *,
    settings: str | None = "",
    apply_times: tuple[str, ...] = (),
    system: Mapping[str, Any] | None = None,
    attributes: Mapping[str, Any] | None = None,
    full: bool = False,
    types: tuple[str, ...] = TYPES,
    flat: bool = False,
) -> Dump:
    """A dump of a machine of a maker.

    Args:
        settings: Last part of the settings resource's URI; "" for the maker's usual one, None for none.
        full: The settings resource lists all settings, not only those that wait.
        flat: Settings stand in the body itself.
    """
    values = dict(VALUES if attributes is None else attributes)
    name = _SETTINGS.get(maker, "Settings") if settings == "" else settings
    bios: dict[str, Any] = {
        "@odata.id": BIOS,
        "@odata.type": "#Bios.v1_1_0.Bios",
        "AttributeRegistry": "BiosAttributeRegistry.v1_0_0",
        **(values if flat else {"Attributes": values}),
    }
    made: dict[str, Any] = {
        ROOT: {
            "@odata.id": ROOT,
            "RedfishVersion": "1.15.0",
            "Vendor": maker,
            "Systems": {"@odata.id": f"{ROOT}/Systems"},
            "Managers": {"@odata.id": f"{ROOT}/Managers"},
            "Registries": {"@odata.id": f"{ROOT}/Registries"},
            "Links": {"Sessions": {"@odata.id": f"{ROOT}/SessionService/Sessions"}},
        },
        f"{ROOT}/Systems": {"Members": [{"@odata.id": SYSTEM}]},
        SYSTEM: {
            "@odata.id": SYSTEM,
            "@odata.type": "#ComputerSystem.v1_10_0.ComputerSystem",
            "Manufacturer": maker,
            "Model": "Small",
            "SerialNumber": "S1",
            "PowerState": "On",
            "BootProgress": {"LastState": "OSRunning"},
            "Bios": {"@odata.id": BIOS},
            "Links": {"ManagedBy": [{"@odata.id": MANAGER}]},
            "Actions": {
                "#ComputerSystem.Reset": {"target": RESET, "ResetType@Redfish.AllowableValues": list(types)}
            },
            **(system or {}),
        },
        f"{ROOT}/Managers": {"Members": [{"@odata.id": MANAGER}]},
        MANAGER: {"@odata.id": MANAGER, "@odata.type": "#Manager.v1_5_0.Manager", "FirmwareVersion": "1.0"},
        f"{ROOT}/SessionService": {"@odata.id": f"{ROOT}/SessionService", "SessionTimeout": 300},
        BIOS: bios,
        f"{ROOT}/Registries": {"Members": [{"@odata.id": REGISTRY}]},
        REGISTRY: {
            "@odata.id": REGISTRY,
            "Id": "BiosAttributeRegistry",
            "Registry": "BiosAttributeRegistry.1.0",
            "Location": [{"Language": "en", "Uri": f"{ROOT}/registrystore/bios.json"}],
        },
        f"{ROOT}/registrystore/bios.json": {"Language": "en", "RegistryEntries": _entries()},
    }
    if name:
        uri = f"{BIOS}/{name}"
        bios["@Redfish.Settings"] = {"SettingsObject": {"@odata.id": uri}}
        if apply_times:
            bios["@Redfish.Settings"]["SupportedApplyTimes"] = list(apply_times)
        made[uri] = {
            "@odata.id": uri,
            "@odata.etag": 'W/"100"',
            **((values if full else {}) if flat else {"Attributes": values if full else {}}),
        }
    return Dump(made)


def dell(**more: Any) -> Dump:
    """An iDRAC: an apply time makes the job, and only the job applies."""
    return small("Dell Inc.", apply_times=("OnReset", "AtMaintenanceWindowStart"), **more)


def hpe(**more: Any) -> Dump:
    """An iLO: everything is taken, POST judges and tells."""
    return small("HPE", full=True, system={"Oem": {"Hpe": {"PostState": "FinishedPost"}}}, **more)


def lenovo(**more: Any) -> Dump:
    """An XCC: advertises OnReset, and refuses it."""
    return small("Lenovo", apply_times=("OnReset",), full=True, **more)


def ami(**more: Any) -> Dump:
    """AMI: If-Match is required, and POST cannot be seen."""
    return small("AMI", system={"BootProgress": None}, **more)


def _entries() -> dict[str, Any]:
    return {
        "Attributes": [
            _enumeration("SysProfile", "PerfOptimized", "Custom"),
            _enumeration("PcieAspmL1", *_ON_OFF),
            _enumeration("IommuSupport", *_ON_OFF),
            _enumeration("SriovGlobalEnable", *_ON_OFF),
            _enumeration("XhciHandOff", *_ON_OFF, DisplayName="XHCI Hand-off"),
            _enumeration("PciSlot1LinkSpeed", "Auto", "Gen3", "Gen4"),
            _enumeration("PciSlot2LinkSpeed", "Auto", "Gen3", "Gen4"),
            {"AttributeName": "AssetTag", "Type": "String", "MaxLength": 16},
        ],
        "Dependencies": [
            _forces("IommuSupport", "Disabled", "SriovGlobalEnable", "CurrentValue", "Disabled"),
            # What is set together with XhciHandOff=Disabled can be written only after it took effect.
            _forces("XhciHandOff", "Enabled", "PcieAspmL1", "ReadOnly", True),
        ],
    }


def _enumeration(name: str, *values: str, **more: Any) -> dict[str, Any]:
    listed = [{"ValueName": value, "ValueDisplayName": value} for value in values]
    return {"AttributeName": name, "Type": "Enumeration", "Value": listed, "DefaultValue": values[0], **more}


def _forces(source: str, value: str, target: str, aspect: str, result: Any) -> dict[str, Any]:
    condition = {
        "MapFromAttribute": source,
        "MapFromProperty": "CurrentValue",
        "MapFromCondition": "EQU",
        "MapFromValue": value,
    }
    return {
        "Type": "Map",
        "DependencyFor": target,
        "Dependency": {
            "MapFrom": [condition],
            "MapToAttribute": target,
            "MapToProperty": aspect,
            "MapToValue": result,
        },
    }
