"""Finding a BIOS's attribute registry: no two vendors name it alike.

Seen: Bios says BiosAttributeRegistry.v1_0_3 and Registries has BiosAttributeRegistry.v1_0_0 (Dell);
Registries/BiosAttributeRegistry with Registry "BiosAttributeRegistry.1.0.0" (Supermicro); Registry
"BiosAttributeRegistry.1.0" (Lenovo); Language "en-US" and a Uri that ends in .json (AMI); Uri
{"extref": ...} (iLO 4); no AttributeRegistry in Bios (OpenBMC); no registry at all (Intel, Cray EX).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from nodeprep.bmc.redfish.bios import BiosSettings
from nodeprep.bmc.redfish.connection import Connection
from nodeprep.bmc.redfish.errors import Malformed, Missing, RedfishError
from nodeprep.bmc.redfish.registry import Registry, no_registry, read_registry
from nodeprep.bmc.redfish.resource import Resource, own_path

REGISTRIES = "/redfish/v1/Registries"
_GENERIC = "biosattributeregistry"
_VERSION = re.compile(r"[._]v?\d+(?:[._]\d+)*$")
_DIGITS = re.compile(r"(?<=registry)\d+$")
# Registries a BMC may have of other kinds, each looked into when no name tells which one is the BIOS's.
_MOST_UNNAMED = 40
# Some answer so to what they do not have.
_NOT_HERE = frozenset({400, 405, 501})


def find_registry(connection: Connection, bios: BiosSettings) -> Registry:
    """The registry of a BIOS; one that is `absent`, with all places that were looked at, when there is none.

    Raises:
        BmcUnreachable: No answer, which is not the same as no registry.
        RedfishError: None is found, and something that may be it was refused, or cannot be read.
    """
    return _Finder(connection, bios).find()


def normalised(name: str) -> str:
    """The name of a registry without version and file ending."""
    text = name.strip().lower().removesuffix(".json")
    return _DIGITS.sub("", _VERSION.sub("", text))


class _Finder:
    def __init__(self, connection: Connection, bios: BiosSettings) -> None:
        self._connection = connection
        self._bios = bios
        self._looked_for: list[str] = []
        self._read: dict[str, Resource | None] = {}
        self._damaged: RedfishError | None = None
        named = (f"{REGISTRIES}/{bios.registry_name}", f"{REGISTRIES}/{bios.registry_name}.json")
        self._guesses = (
            f"{REGISTRIES}/BiosAttributeRegistry",
            *(named if bios.registry_name else ()),
            f"{bios.uri.rstrip('/')}/BiosRegistry",
        )

    def find(self) -> Registry:
        best: tuple[int, Registry] | None = None
        for place in self._places():
            found = self._registry(place)
            if found is None:
                continue
            known = sum(1 for name in self._bios.current if name in found.attributes)
            if 2 * known >= len(self._bios.current):
                return found
            # Of another machine, or of another part of this one; kept, should nothing better come.
            if known and (best is None or known > best[0]):
                best = (known, found)
        if best is not None:
            return best[1]
        if self._damaged is not None:
            # There is one. What it says is not known, which is not the same as nothing.
            raise self._damaged
        return no_registry(
            self._bios.current, self._bios.offered, looked_for=tuple(dict.fromkeys(self._looked_for))
        )

    def _places(self) -> Iterator[str]:
        """Where it may be, the likeliest first: paths of files and of registries themselves."""
        name = self._bios.registry_name
        members = self._members()
        if name:
            yield from (uri for uri in members if _last(uri) == name)
            yield from (uri for uri in members if normalised(_last(uri)) == normalised(name))
            yield from (uri for uri in members if self._names_itself(uri, name))
        yield from (uri for uri in members if normalised(_last(uri)).startswith(_GENERIC))
        # Not in the collection, or no collection.
        yield from self._guesses

    def _members(self) -> tuple[str, ...]:
        uri = self._connection.root.find_link("Registries") or REGISTRIES
        self._looked_for.append(uri)
        collection = self._get(uri)
        if collection is None:
            return ()
        try:
            return collection.members()
        except (Missing, Malformed):
            return ()

    def _names_itself(self, uri: str, name: str) -> bool:
        """Whether a file that is called otherwise says in its Registry property that it is the one."""
        if len(self._read) > _MOST_UNNAMED:
            return False
        file = self._get(uri)
        told = file.body.get("Registry") if file is not None else None
        return isinstance(told, str) and normalised(told) == normalised(name)

    def _registry(self, place: str) -> Registry | None:
        self._looked_for.append(place)
        file = self._get(place)
        if file is None:
            return None
        if "RegistryEntries" in file.body:
            return self._parsed(file)
        for uri in _locations(file):
            for spelling in dict.fromkeys((uri, f"{uri}.json", uri.removesuffix(".json"))):
                self._looked_for.append(spelling)
                found = self._get(spelling)
                if found is not None and "RegistryEntries" in found.body:
                    return self._parsed(found)
        return None

    def _parsed(self, found: Resource) -> Registry | None:
        registry = read_registry(
            found.body, self._bios.current, uri=found.uri, looked_for=tuple(dict.fromkeys(self._looked_for))
        )
        if registry.attributes:
            return registry
        self._damage(Malformed(f"{found.uri} is a registry without attributes", uri=found.uri))
        return None

    def _get(self, uri: str) -> Resource | None:
        if uri not in self._read:
            self._read[uri] = None
            try:
                self._read[uri] = self._connection.get(uri)
            except Missing:
                pass
            except RedfishError as error:
                if error.status not in _NOT_HERE and uri not in self._guesses:
                    self._damage(error)
        return self._read[uri]

    def _damage(self, error: RedfishError) -> None:
        self._damaged = self._damaged or error


def _locations(file: Resource) -> list[str]:
    """The paths a registry file names, English first: names of settings are matched in English."""
    location = file.body.get("Location")
    entries = location if isinstance(location, list) else [location]
    found: list[tuple[int, str]] = []
    for entry in entries:
        if not isinstance(entry, Mapping):
            continue
        path = _path(entry.get("Uri"))
        if path:
            found.append((_rank(entry.get("Language")), path))
    return [path for _, path in sorted(found, key=lambda one: one[0])]


def _path(uri: Any) -> str:
    if isinstance(uri, Mapping):
        uri = uri.get("extref") or uri.get("@odata.id") or uri.get("href")
    return own_path(uri)


def _rank(language: Any) -> int:
    text = language.lower() if isinstance(language, str) else ""
    if text == "en":
        return 0
    if text.startswith("en"):
        return 1
    return 2 if text in ("", "default") else 3


def _last(uri: str) -> str:
    return uri.rstrip("/").rsplit("/", 1)[-1]
