"""A BIOS out of a dump `{uri: body}` of a BMC, without a BMC. For documentation and tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nodeprep.bmc.bios.attributes import BiosView
from nodeprep.bmc.redfish.registry import Registry, no_registry, read_registry
from nodeprep.errors import UsageError
from nodeprep.model.bios import BiosMachine

Dump = Mapping[str, Any]
_SETTINGS = ("Settings", "SD", "Pending")


def read_dump(dump: Dump) -> tuple[BiosMachine, BiosView]:
    """The machine and its BIOS.

    Raises:
        UsageError: There is no system with a BIOS in it.
    """
    bodies = {_plain(uri): body for uri, body in dump.items() if isinstance(body, Mapping)}
    system = next(
        (body for body in bodies.values() if _link(body, "Bios") in bodies and _is_system(body)), None
    )
    if system is None:
        raise UsageError("the dump has no system with a Bios resource")
    bios = bodies[_link(system, "Bios")]
    current = dict(bios.get("Attributes") or {})
    manager = next((body for body in bodies.values() if "#Manager." in str(body.get("@odata.type"))), {})
    machine = BiosMachine(
        vendor=_text(system, "Manufacturer"),
        model=_text(system, "Model"),
        bios=_text(system, "BiosVersion"),
        bmc_firmware=_text(manager, "FirmwareVersion"),
    )
    return machine, BiosView(
        registry=_registry(bodies, current),
        current=current,
        pending=_pending(bodies, bios, _link(system, "Bios")),
    )


def logical_cpus(dump: Dump) -> int | None:
    """Logical CPUs of the system; None when the BMC does not say."""
    for body in dump.values():
        if isinstance(body, Mapping) and _is_system(body):
            count = (body.get("ProcessorSummary") or {}).get("LogicalProcessorCount")
            if isinstance(count, int):
                return count
    return None


def _registry(bodies: Dump, current: Mapping[str, Any]) -> Registry:
    """The English one that knows most of the present attributes."""
    found = [
        read_registry(body, current, uri=uri)
        for uri, body in bodies.items()
        if isinstance(body.get("RegistryEntries"), Mapping)
        and str(body.get("Language") or "en").lower().startswith("en")
    ]
    known = {id(one): sum(name in one.attributes for name in current) for one in found}
    best = max(found, key=lambda one: known[id(one)], default=None)
    return best if best is not None and known[id(best)] else no_registry(current)


def _pending(bodies: Dump, bios: Mapping[str, Any], uri: str) -> Mapping[str, Any]:
    named = _link(bios.get("@Redfish.Settings") or {}, "SettingsObject")
    for place in (named, *(f"{uri}/{name.lower()}" for name in _SETTINGS)):
        if place in bodies:
            return bodies[place].get("Attributes") or {}
    return {}


def _is_system(body: Mapping[str, Any]) -> bool:
    return "#ComputerSystem." in str(body.get("@odata.type"))


def _link(body: Mapping[str, Any], name: str) -> str:
    link = body.get(name)
    return _plain(str(link.get("@odata.id"))) if isinstance(link, Mapping) else ""


def _plain(uri: str) -> str:
    return uri.rstrip("/").lower()


def _text(body: Mapping[str, Any], name: str) -> str:
    value = body.get(name)
    return value.strip() if isinstance(value, str) else ""
