"""A dump `{uri: body}` of a real BMC, and what in it the simulator brings to life."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from nodeprep.errors import UsageError
from nodeprep.sim.bmc.attributes import Shape, shape_of
from nodeprep.sim.bmc.registry import AttributeRegistry

ROOT = "/redfish/v1"
MARK = {"Nodeprep": {"Simulated": True}}
# Resources that have an Oem property, and so can say that they are simulated.
_MARKED = ("#ServiceRoot.", "#ComputerSystem.", "#Chassis.", "#Manager.")
_COLLECTIONS = ("Systems", "Chassis", "Managers", "Registries")
_BIOS = re.compile(rf"{ROOT}/Systems/[^/]+/Bios", re.IGNORECASE)
_SETTINGS_NAMES = ("Settings", "settings", "SD", "Pending")


def read_dump(path: Path) -> Dump:
    """A dump from a file.

    Raises:
        UsageError: It cannot be read, or is no such thing.
    """
    try:
        found = json.loads(path.read_bytes())
    except OSError as error:
        raise UsageError(
            f"cannot read {path}: {error.strerror}", hint="name a JSON file {uri: body}"
        ) from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} is no JSON: {error}", hint="a dump is one object {uri: body}") from error
    return Dump(found, source=str(path))


class Dump:
    """The resources of one BMC. Never changed, so that many simulated BMCs can share it.

    Args:
        resources: {uri: body}.
        source: Where it comes from, for messages.

    Raises:
        UsageError: It is no such thing, or holds no system.
    """

    def __init__(self, resources: Any, source: str = "the dump") -> None:
        if not isinstance(resources, Mapping) or not resources:
            raise UsageError(f"{source} is no dump", hint="a dump is one JSON object {uri: body}")
        for uri in resources:
            if not isinstance(uri, str) or not uri.startswith("/"):
                raise UsageError(f"{source}: {str(uri)[:60]!r} is no URI", hint="keys begin with /redfish/v1")
        self.source = source
        self.resources: dict[str, Any] = {plain(uri): body for uri, body in resources.items()}
        for uri in [uri for uri, body in self.resources.items() if _is_error(body)]:
            del self.resources[uri]
        self._lower = {uri.lower(): uri for uri in self.resources}
        # What resources call themselves, where a crawler found them under another name.
        self._names = {plain(link_of(body)): uri for uri, body in self.resources.items() if link_of(body)}
        self._encoded: dict[str, bytes] = {}
        self._compressed: dict[str, bytes] = {}
        self._make_up_the_way()
        if ROOT not in self.resources:
            self._add(ROOT, self._made_up_root())

    def find(self, path: str, *, any_case: bool = False) -> str | None:
        """The key of a path: without the slash at its end, and in any case where the BMC allows that."""
        bare = plain(path)
        if bare in self.resources:
            return bare
        return self._names.get(bare) or (self._lower.get(bare.lower()) if any_case else None)

    def body(self, uri: str | None) -> dict[str, Any]:
        """A resource, marked as simulated; empty when there is none or it is no object."""
        found = self.resources.get(uri or "")
        if not isinstance(found, dict):
            return {}
        if str(found.get("@odata.type", "")).startswith(_MARKED) or uri == ROOT:
            oem = found.get("Oem")
            return {**found, "Oem": {**(oem if isinstance(oem, dict) else {}), **MARK}}
        return found

    def encoded(self, uri: str) -> bytes:
        """A resource that never changes, as JSON. Kept, since a thousand BMCs send it."""
        if uri not in self._encoded:
            self._encoded[uri] = as_json(self.body(uri) or self.resources[uri])
        return self._encoded[uri]

    def compressed(self, uri: str) -> bytes:
        """The same with gzip."""
        if uri not in self._compressed:
            self._compressed[uri] = gzip.compress(self.encoded(uri), mtime=0)
        return self._compressed[uri]

    def linked(self, body: Mapping[str, Any], *names: str) -> str | None:
        """The key of the resource that a property names; None when it names none that is here."""
        link = link_of(body, *names)
        return self.find(link, any_case=True) if link else None

    @cached_property
    def system(self) -> str | None:
        """The system with a BIOS; the first one when none has."""
        members = list(self._members("Systems", "#ComputerSystem."))
        with_bios = (uri for uri in members if link_of(self.body(uri), "Bios"))
        return next(with_bios, members[0] if members else None)

    @cached_property
    def bios(self) -> str | None:
        """The Bios resource."""
        if self.system is None:
            return None
        named = self.linked(self.body(self.system), "Bios")
        return named or self.find(f"{self.system}/Bios", any_case=True)

    @cached_property
    def manager(self) -> str | None:
        """The first manager."""
        return next(self._members("Managers", "#Manager."), None)

    @cached_property
    def settings(self) -> str | None:
        """URI of the settings resource, which need not be in the dump; None when there is no telling."""
        if self.bios is None:
            return None
        body = self.body(self.bios)
        named = link_of(body, "@Redfish.Settings", "SettingsObject")
        if named:
            return self.find(named, any_case=True) or plain(named)
        found = (self.find(f"{self.bios}/{name}") for name in _SETTINGS_NAMES)
        return next((uri for uri in found if uri), None)

    @cached_property
    def shape(self) -> Shape:
        """How the BIOS attributes are written."""
        return shape_of(self.body(self.bios))

    @cached_property
    def registry(self) -> AttributeRegistry | None:
        """The attribute registry, in English where there are several languages."""
        found = [uri for uri, body in self.resources.items() if is_registry(body)]
        found.sort(key=lambda uri: not str(self.resources[uri].get("Language", "")).startswith("en"))
        if not found:
            return None
        entries = self.resources[found[0]]["RegistryEntries"]
        return AttributeRegistry(entries, self.shape.read(self.body(self.bios)))

    @property
    def is_full(self) -> bool:
        """Whether the settings resource lists all attributes, not only those that wait."""
        listed = self.shape.read(self.body(self.settings))
        return bool(listed) and len(listed) * 2 > len(self.shape.read(self.body(self.bios)))

    def _members(self, collection: str, kind: str) -> Iterator[str]:
        own = self.linked(self.body(ROOT), collection) or self.find(f"{ROOT}/{collection}")
        members = self.body(own).get("Members")
        for member in members if isinstance(members, list) else []:
            uri = self.linked(member) if isinstance(member, dict) else None
            if uri:
                yield uri
        if own is None or not members:
            yield from (uri for uri, body in self.resources.items() if _is_kind(body, kind))

    def _make_up_the_way(self) -> None:
        """Adds what leads to the BIOS of a dump that was cut down to it: a system, and collections."""
        for uri in [uri for uri in self.resources if _BIOS.fullmatch(uri)]:
            system = uri.rpartition("/")[0]
            if system.lower() not in self._lower:
                made = {"@odata.type": "#ComputerSystem.v1_5_0.ComputerSystem", "PowerState": "On"}
                name = system.rsplit("/", 1)[-1]
                self._add(system, {**made, "@odata.id": system, "Id": name, "Bios": {"@odata.id": uri}})
        for name in _COLLECTIONS:
            collection = f"{ROOT}/{name}"
            members = [uri for uri in self.resources if uri.rpartition("/")[0].lower() == collection.lower()]
            if members and collection.lower() not in self._lower and collection not in self._names:
                listed = [{"@odata.id": uri} for uri in members]
                self._add(collection, {"@odata.id": collection, "Members": listed, "Oem": MARK})

    def _made_up_root(self) -> dict[str, Any]:
        names = ("Systems", "Chassis", "Managers", "Registries", "SessionService", "UpdateService")
        return {
            "@odata.id": ROOT,
            "@odata.type": "#ServiceRoot.v1_5_0.ServiceRoot",
            "Id": "RootService",
            "Name": "Root Service",
            "RedfishVersion": "1.6.0",
            **{name: {"@odata.id": f"{ROOT}/{name}"} for name in names if f"{ROOT}/{name}" in self.resources},
        }

    def _add(self, uri: str, body: dict[str, Any]) -> None:
        self.resources[uri] = body
        self._lower[uri.lower()] = uri


def as_json(body: Any) -> bytes:
    """A body as JSON, with numbers of any length and halves of UTF-16 pairs where its dump has them."""
    try:
        return msgspec.json.encode(body)
    except (UnicodeEncodeError, OverflowError):
        return json.dumps(body).encode()


def plain(uri: str) -> str:
    """A URI without the slash at its end."""
    return uri.rstrip("/") or "/"


def link_of(body: Any, *names: str) -> str:
    """The URI under a path of properties; empty when there is none."""
    found: Any = body
    for name in (*names, "@odata.id"):
        found = found.get(name) if isinstance(found, Mapping) else None
    return found if isinstance(found, str) else ""


def is_registry(body: Any) -> bool:
    """Whether a resource is an attribute registry."""
    entries = body.get("RegistryEntries") if isinstance(body, Mapping) else None
    return isinstance(entries, Mapping) and isinstance(entries.get("Attributes"), list)


def _is_error(body: Any) -> bool:
    """Whether the crawler wrote down an error in place of a resource."""
    return isinstance(body, Mapping) and set(body) == {"error"}


def _is_kind(body: Any, kind: str) -> bool:
    return isinstance(body, Mapping) and str(body.get("@odata.type", "")).startswith(kind)
