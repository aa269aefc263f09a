"""Small trees of BMCs, one a vendor: made up after that vendor's ways, with a handful of BIOS settings each.

Names of attributes, their values and where things stand are as public documentation of these vendors has
them; serial numbers and versions are invented. They are for the simulated rack; a client is better tried on a
dump of a real machine (`nodeprep sim bmc --dump`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nodeprep.sim.bmc import Dump

_ROOT = "/redfish/v1"
_RESETS = ("On", "ForceOff", "GracefulShutdown", "ForceRestart", "GracefulRestart")
_ON_OFF = ("Enabled", "Disabled")


@dataclass(frozen=True, slots=True)
class Setting:
    """One BIOS attribute.

    Attributes:
        values: What it may be; the first one is the default.
        display: As the setup screen has it.
        menu: Path in the setup.
    """

    name: str
    now: str
    values: Sequence[str] = _ON_OFF
    display: str = ""
    menu: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Make:
    """What one vendor's machine is like.

    Attributes:
        settings_name: Last part of the URI of the settings resource.
        full: The settings resource lists every setting, not only those that wait.
        system: Further properties of the system.
    """

    maker: str
    model: str
    system_id: str
    manager_id: str
    firmware: str
    bios: str
    settings: tuple[Setting, ...]
    settings_name: str = "Settings"
    apply_times: tuple[str, ...] = ()
    full: bool = False
    system: Mapping[str, Any] | None = None


MAKES: Mapping[str, Make] = {
    "dell": Make(
        maker="Dell Inc.",
        model="PowerEdge XE9680",
        system_id="System.Embedded.1",
        manager_id="iDRAC.Embedded.1",
        firmware="7.10.30.00",
        bios="2.1.5",
        apply_times=("OnReset", "AtMaintenanceWindowStart"),
        settings=(
            Setting("ProcVirtualization", "Enabled", display="Virtualization Technology"),
            Setting("PcieAspmL1", "Disabled", display="PCI ASPM L1 Link Power Management"),
            Setting("MmioAbove4Gb", "Enabled", display="Memory Mapped I/O above 4GB"),
            Setting("SriovGlobalEnable", "Disabled", display="SR-IOV Global Enable"),
        ),
    ),
    "hpe": Make(
        maker="HPE",
        model="ProLiant XL675d Gen10 Plus",
        system_id="1",
        manager_id="1",
        firmware="iLO 5 v2.98",
        bios="A47 v2.84",
        full=True,
        system={"Oem": {"Hpe": {"PostState": "FinishedPost"}}},
        settings=(
            Setting("ProcAmdIoVt", "Enabled", display="AMD I/O Virtualization Technology"),
            Setting("PcieGlobalAspm", "Auto", ("Auto", "Disabled"), display="PCIe Power Management(ASPM)"),
            Setting("Sriov", "Enabled", display="SR-IOV"),
        ),
    ),
    "lenovo": Make(
        maker="Lenovo",
        model="ThinkSystem SR685a V3",
        system_id="1",
        manager_id="1",
        firmware="QGX330R",
        bios="QGE128H",
        settings_name="Pending",
        apply_times=("OnReset",),
        full=True,
        settings=(
            Setting(
                "DevicesandIOPorts_IOMMU",
                "Auto",
                ("Auto", "Disabled", "Enabled"),
                display="IOMMU",
                menu="./DevicesandIOPorts",
            ),
            Setting("Power_ASPM", "Disabled", ("Auto", "Disabled"), display="ASPM", menu="./Power"),
            Setting("DevicesandIOPorts_SRIOV", "Enabled", display="SRIOV", menu="./DevicesandIOPorts"),
        ),
    ),
    "ami": Make(
        maker="AMI",
        model="G593-SD0",
        system_id="Self",
        manager_id="Self",
        firmware="13.06.11",
        bios="R14",
        settings_name="SD",
        settings=(
            Setting(
                "BirchStream0123",
                "Enable",
                ("Enable", "Disable"),
                display="Intel® VT for Directed I/O (VT-d)",
                menu="./IIOConfiguration",
            ),
            Setting(
                "PCIS007",
                "Disabled",
                ("Disabled", "Auto"),
                display="PCIe ASPM Support (Global)",
                menu="./PCIe",
            ),
            Setting("PCIS006", "Enabled", display="Above 4G Decoding", menu="./PCIe"),
        ),
    ),
    "supermicro": Make(
        maker="Supermicro",
        model="SYS-821GE-TNHR",
        system_id="1",
        manager_id="1",
        firmware="01.03.18",
        bios="2.1",
        settings_name="SD",
        settings=(
            Setting(
                "IntelVTforDirectedI_O_VT_d__1E32",
                "Enable",
                ("Disable", "Enable"),
                display="Intel® VT for Directed I/O (VT-d)",
            ),
            Setting(
                "PCIeASPMSupport_Global__00A6",
                "Disable",
                ("Auto", "Disable"),
                display="PCIe ASPM Support (Global)",
            ),
            Setting("XHCIHand_off_002A", "Enabled", display="XHCI Hand-off"),
        ),
    ),
    "nvidia": Make(
        maker="NVIDIA",
        model="DGX",
        system_id="DGX",
        manager_id="BMC",
        firmware="24.01.05",
        bios="1.1.3",
        settings=(
            Setting("IOMMU", "Enabled", display="IOMMU"),
            Setting("ASPM", "Disabled", display="PCIe ASPM"),
        ),
    ),
}


def bmc_tree(make: Make, *, serial: str, without: Sequence[str] = ()) -> Dump:
    """The tree of one machine.

    Args:
        without: Names of settings that its BIOS lacks.
    """
    settings = [one for one in make.settings if one.name not in without]
    system, manager = f"{_ROOT}/Systems/{make.system_id}", f"{_ROOT}/Managers/{make.manager_id}"
    bios, registry = f"{system}/Bios", f"{_ROOT}/Registries/BiosAttributeRegistry"
    values = {one.name: one.now for one in settings}
    about: dict[str, Any] = {"SettingsObject": _link(f"{bios}/{make.settings_name}")}
    if make.apply_times:
        about["SupportedApplyTimes"] = list(make.apply_times)
    return Dump(
        {
            _ROOT: _service_root(make.maker),
            f"{_ROOT}/Systems": {**_link(f"{_ROOT}/Systems"), "Members": [_link(system)]},
            f"{_ROOT}/Managers": {**_link(f"{_ROOT}/Managers"), "Members": [_link(manager)]},
            f"{_ROOT}/Registries": {**_link(f"{_ROOT}/Registries"), "Members": [_link(registry)]},
            f"{_ROOT}/SessionService": {**_link(f"{_ROOT}/SessionService"), "SessionTimeout": 300},
            system: _system(make, system, manager, serial),
            manager: {
                **_link(manager),
                "@odata.type": "#Manager.v1_5_0.Manager",
                "FirmwareVersion": make.firmware,
            },
            bios: {
                **_link(bios),
                "@odata.type": "#Bios.v1_1_0.Bios",
                "AttributeRegistry": "BiosAttributeRegistry.v1_0_0",
                "Attributes": values,
                "@Redfish.Settings": about,
            },
            f"{bios}/{make.settings_name}": {
                **_link(f"{bios}/{make.settings_name}"),
                "@odata.etag": 'W/"1"',
                "Attributes": values if make.full else {},
            },
            registry: {
                **_link(registry),
                "Id": "BiosAttributeRegistry",
                "Registry": "BiosAttributeRegistry.1.0",
                "Location": [{"Language": "en", "Uri": f"{_ROOT}/registrystore/bios.json"}],
            },
            f"{_ROOT}/registrystore/bios.json": {
                "Language": "en",
                "RegistryEntries": {"Attributes": [_entry(one) for one in settings]},
            },
        },
        source=f"the tree of a {make.maker} {make.model}",
    )


def _service_root(maker: str) -> dict[str, Any]:
    collections = ("Systems", "Managers", "Registries")
    return {
        **_link(_ROOT),
        "@odata.type": "#ServiceRoot.v1_9_0.ServiceRoot",
        "RedfishVersion": "1.15.0",
        "Vendor": maker,
        **{name: _link(f"{_ROOT}/{name}") for name in collections},
        "Links": {"Sessions": _link(f"{_ROOT}/SessionService/Sessions")},
    }


def _system(make: Make, uri: str, manager: str, serial: str) -> dict[str, Any]:
    action = {
        "target": f"{uri}/Actions/ComputerSystem.Reset",
        "ResetType@Redfish.AllowableValues": list(_RESETS),
    }
    return {
        **_link(uri),
        "@odata.type": "#ComputerSystem.v1_16_0.ComputerSystem",
        "Manufacturer": make.maker,
        "Model": make.model,
        "SerialNumber": serial,
        "BiosVersion": make.bios,
        "PowerState": "On",
        "BootProgress": {"LastState": "OSRunning"},
        "Bios": _link(f"{uri}/Bios"),
        "Links": {"ManagedBy": [_link(manager)]},
        "Actions": {"#ComputerSystem.Reset": action},
        **(make.system or {}),
    }


def _entry(one: Setting) -> dict[str, Any]:
    return {
        "AttributeName": one.name,
        "DisplayName": one.display or one.name,
        "MenuPath": one.menu or "./",
        "Type": "Enumeration",
        "DefaultValue": one.values[0],
        "Value": [{"ValueName": value, "ValueDisplayName": value} for value in one.values],
    }


def _link(uri: str) -> dict[str, str]:
    return {"@odata.id": uri}
