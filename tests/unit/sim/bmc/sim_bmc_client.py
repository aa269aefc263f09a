"""A small tree of a BMC that nobody makes, a clock that tests turn, and a client without a network."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nodeprep.sim.bmc import Dump, SimulatedBmc
from nodeprep.sim.bmc.wire import Link, Request, Response

ROOT = "/redfish/v1"
SYSTEM = f"{ROOT}/Systems/1"
BIOS = f"{SYSTEM}/Bios"
RESET = f"{SYSTEM}/Actions/ComputerSystem.Reset"
MANAGER = f"{ROOT}/Managers/1"
REGISTRY = f"{ROOT}/registries/bios.json"
SESSIONS = f"{ROOT}/SessionService/Sessions"
USER, PASSWORD = "admin", "secret"
TYPES = ["On", "ForceOff", "GracefulShutdown", "ForceRestart", "GracefulRestart", "PushPowerButton", "Nmi"]
ATTRIBUTES = {
    "Profile": "Performance",
    "Aspm": "Disabled",
    "Iommu": "Enabled",
    "LinkSpeed": "Auto",
    "BusNumber": 7,
    "Sriov": True,
    "AssetTag": "",
}


def _enumeration(name: str, *values: str, **more: Any) -> dict[str, Any]:
    listed = [{"ValueName": value, "ValueDisplayName": value.upper()} for value in values]
    return {"AttributeName": name, "Type": "Enumeration", "Value": listed, "DefaultValue": values[0], **more}


def _map(origin: tuple[str, str, str], target: tuple[str, str, Any]) -> dict[str, Any]:
    source, condition, value = origin
    name, flag, result = target
    mapped = {
        "MapFromAttribute": source,
        "MapFromProperty": "CurrentValue",
        "MapFromCondition": condition,
        "MapFromValue": value,
    }
    dependency = {"MapFrom": [mapped], "MapToAttribute": name, "MapToProperty": flag, "MapToValue": result}
    return {"DependencyFor": name, "Type": "Map", "Dependency": dependency}


def registry() -> dict[str, Any]:
    """Writable Aspm only with a custom profile; LinkSpeed grayed out with the Performance one."""
    return {
        "@odata.id": REGISTRY,
        "@odata.type": "#AttributeRegistry.v1_3_0.AttributeRegistry",
        "Language": "en",
        "RegistryEntries": {
            "Attributes": [
                _enumeration("Profile", "Performance", "Custom", "Quiet"),
                _enumeration("Aspm", "Disabled", "Enabled", ReadOnly=True),
                _enumeration("Iommu", "Enabled", "Disabled"),
                _enumeration("LinkSpeed", "Auto", "Gen3", "Gen4"),
                {"AttributeName": "BusNumber", "Type": "Integer", "LowerBound": 0, "UpperBound": 255},
                {"AttributeName": "Sriov", "Type": "Boolean", "DefaultValue": True},
                {"AttributeName": "AssetTag", "Type": "String", "MaxLength": 8},
            ],
            "Dependencies": [
                _map(("Profile", "NEQ", "Custom"), ("Aspm", "ReadOnly", True)),
                _map(("Profile", "EQU", "Performance"), ("LinkSpeed", "GrayOut", "true")),
                _map(("Profile", "EQU", "Quiet"), ("Iommu", "CurrentValue", "Disabled")),
            ],
        },
    }


def tree(
    maker: str = "Acme",
    *,
    settings: str | None = "Settings",
    attributes: Mapping[str, Any] | None = None,
    bios: Mapping[str, Any] | None = None,
    etag: str = 'W/"100"',
    with_registry: bool = True,
    system: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """A dump. `settings` is the last part of the URI of the settings resource; None leaves it out."""
    values = dict(ATTRIBUTES if attributes is None else attributes)
    made: dict[str, Any] = {
        f"{ROOT}/": {
            "@odata.id": ROOT,
            "@odata.type": "#ServiceRoot.v1_5_0.ServiceRoot",
            "Vendor": maker,
            "Systems": {"@odata.id": f"{ROOT}/Systems"},
            "Managers": {"@odata.id": f"{ROOT}/Managers"},
            "Links": {"Sessions": {"@odata.id": SESSIONS}},
        },
        f"{ROOT}/Systems": {"@odata.id": f"{ROOT}/Systems", "Members": [{"@odata.id": SYSTEM}]},
        SYSTEM: {
            "@odata.id": SYSTEM,
            "@odata.type": "#ComputerSystem.v1_10_0.ComputerSystem",
            "Manufacturer": maker,
            "PowerState": "On",
            "BootProgress": {"LastState": "OSRunning"},
            "Bios": {"@odata.id": BIOS},
            "Actions": {
                "#ComputerSystem.Reset": {"target": RESET, "ResetType@Redfish.AllowableValues": list(TYPES)}
            },
            **(system or {}),
        },
        f"{ROOT}/Managers": {"@odata.id": f"{ROOT}/Managers", "Members": [{"@odata.id": MANAGER}]},
        MANAGER: {
            "@odata.id": MANAGER,
            "@odata.type": "#Manager.v1_5_0.Manager",
            "Actions": {"#Manager.Reset": {"target": f"{MANAGER}/Actions/Manager.Reset"}},
        },
        f"{ROOT}/SessionService": {"@odata.id": f"{ROOT}/SessionService", "SessionTimeout": 300},
        BIOS: {
            "@odata.id": BIOS,
            "@odata.type": "#Bios.v1_1_0.Bios",
            "@odata.etag": 'W/"7"',
            "AttributeRegistry": "Bios.1.0",
            "Actions": {"#Bios.ResetBios": {"target": f"{BIOS}/Actions/Bios.ResetBios"}},
            **(dict(bios) if bios is not None else {"Attributes": values}),
        },
    }
    if settings:
        uri = f"{BIOS}/{settings}"
        made[BIOS]["@Redfish.Settings"] = {
            "SettingsObject": {"@odata.id": uri},
            "SupportedApplyTimes": ["OnReset"],
        }
        made[uri] = {"@odata.id": uri, "Id": settings, "@odata.etag": etag, "Attributes": {}}
    if with_registry:
        made[REGISTRY] = registry()
    return made


class Clock:
    """Time that stands still until told."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now

    def forward(self, seconds: float) -> None:
        self.now += seconds


@dataclass
class Answer:
    response: Response

    @property
    def status(self) -> int:
        return self.response.status

    @property
    def link(self) -> Link:
        return self.response.link

    @property
    def headers(self) -> Mapping[str, str]:
        return self.response.headers

    @property
    def json(self) -> dict[str, Any]:
        body = self.response.body
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        found = json.loads(body)
        assert isinstance(found, dict)
        return found

    @property
    def ids(self) -> list[str]:
        """Last parts of the message ids of an error."""
        messages = self.json["error"]["@Message.ExtendedInfo"]
        return [message["MessageId"].rsplit(".", 1)[-1] for message in messages]


class Client:
    """Speaks to a simulated BMC that is not on a network."""

    def __init__(
        self, dump: Dump | Mapping[str, Any], *faults: str, post_s: float = 10.0, **options: Any
    ) -> None:
        self.clock = Clock()
        self.post_s = post_s
        own = dump if isinstance(dump, Dump) else Dump(dict(dump))
        self.bmc = SimulatedBmc(
            own, user=USER, password=PASSWORD, faults=faults, clock=self.clock, post_s=post_s, **options
        )
        basic = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        self.login: dict[str, str] = {"authorization": f"Basic {basic}"}

    def ask(self, method: str, target: str, body: Any = None, turn: int = 0, **headers: str) -> Answer:
        path, _, query = target.partition("?")
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        data = b"" if body is None else json.dumps(body).encode()
        return Answer(self.bmc.handle(Request(method, path, {**self.login, **sent}, data, turn, query)))

    def get(self, path: str, **headers: str) -> Answer:
        return self.ask("GET", path, **headers)

    def patch(self, path: str, body: Any, **headers: str) -> Answer:
        return self.ask("PATCH", path, body, **headers)

    def post(self, path: str, body: Any = None, **headers: str) -> Answer:
        return self.ask("POST", path, body or {}, **headers)

    def reset(self, kind: str = "ForceRestart") -> Answer:
        return self.post(RESET, {"ResetType": kind})

    def boot(self, kind: str = "ForceRestart") -> None:
        """A reset, and the whole POST after it."""
        assert self.reset(kind).status == 204
        self.clock.forward(self.post_s + 1)

    @property
    def settings(self) -> str:
        uri = self.bmc.state.settings_uri
        assert uri is not None
        return uri

    def stage(self, values: Mapping[str, Any], **headers: str) -> Answer:
        return self.patch(self.settings, {"Attributes": dict(values)}, **headers)

    def current(self, name: str) -> Any:
        return self.get(BIOS).json["Attributes"][name]

    def waiting(self) -> dict[str, Any]:
        found = self.get(self.settings).json.get("Attributes", {})
        assert isinstance(found, dict)
        return found
