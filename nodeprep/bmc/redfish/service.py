"""Who a Redfish service is: its system, chassis and manager, and what they call themselves."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from dataclasses import dataclass

from nodeprep.bmc.redfish.connection import Connection
from nodeprep.bmc.redfish.errors import Malformed, Missing, RedfishError
from nodeprep.bmc.redfish.resource import Resource
from nodeprep.errors import UsageError

SYSTEMS, CHASSIS, MANAGERS = "/redfish/v1/Systems", "/redfish/v1/Chassis", "/redfish/v1/Managers"
# By what the makers write of themselves; the first that matches.
_VENDORS: tuple[tuple[str, str], ...] = (
    ("dell", r"\bdell\b"),
    # XD is made of other parts, under AMI firmware.
    ("cray", r"\bcray\b(?!\s*xd)"),
    ("hpe", r"\bhpe?\b|hewlett"),
    ("lenovo", r"\blenovo\b"),
    ("supermicro", r"super\s?micro|\bsmci?\b"),
    ("gigabyte", r"giga[\s-]?byte|giga computing"),
    ("nvidia", r"nvidia"),
    ("intel", r"\bintel\b"),
    ("asus", r"asus"),
    ("quanta", r"quanta|\bqct\b"),
    ("inspur", r"inspur|ieit"),
    ("zt", r"\bzt\s?systems"),
    ("wiwynn", r"wiwynn"),
    ("cisco", r"\bcisco\b"),
    ("fujitsu", r"fujitsu|fsas"),
    ("asrock", r"asrock"),
    ("huawei", r"huawei|xfusion"),
    ("ami", r"\bami\b|american megatrends|megarac"),
    ("openbmc", r"openbmc"),
)


@dataclass(frozen=True, slots=True)
class RedfishIdentity:
    """Who was spoken to.

    Attributes:
        vendor: One word in lower case for the maker of the system, "dell"; "unknown" when nothing tells.
        manufacturer: As written, "Dell Inc.".
        bios: Version.
        bmc_firmware: Version.
        redfish: Who wrote the Redfish service, in the same words as `vendor`, where that is told apart:
            "ami" under many makers.
    """

    vendor: str
    manufacturer: str
    model: str
    bios: str
    bmc_firmware: str
    redfish: str = ""


@dataclass(frozen=True, slots=True)
class Service:
    """The parts of a service that concern one system.

    Attributes:
        chassis, manager: None when the system names none and the service has none.
    """

    root: Resource
    system: Resource
    chassis: Resource | None
    manager: Resource | None
    identity: RedfishIdentity


def read_service(connection: Connection) -> Service:
    """The system of a BMC, and who it is: the one that the target names, where there are several.

    Raises:
        UsageError: There are several with a BIOS, or none of that id.
        Missing, Malformed: The service has no systems, or no list of them.
        BmcUnreachable: No answer.
    """
    root = connection.root
    found = read_system(connection)
    chassis = _part(connection, found, "Chassis", root.find_link("Chassis") or CHASSIS)
    manager = _part(connection, found, "ManagedBy", root.find_link("Managers") or MANAGERS)
    return Service(root, found, chassis, manager, _identity(root, found, manager))


def read_system(connection: Connection) -> Resource:
    """The system of a BMC alone.

    Raises:
        As `read_service`.
    """
    collection = connection.root.find_link("Systems") or SYSTEMS
    return _system(connection, collection, connection.target.system)


def vendor_word(*told: str) -> str:
    """One word for a maker; the first text that is recognised counts. "unknown" when none is."""
    for text in told:
        for word, pattern in _VENDORS:
            if re.search(pattern, text, re.IGNORECASE):
                return word
    return "unknown"


def _system(connection: Connection, collection: str, wanted: str) -> Resource:
    members = listed = connection.get(collection).members()
    if wanted:
        members = tuple(uri for uri in listed if _id(uri) == wanted)
        if not members:
            there = ", ".join(map(_id, listed)) or "none at all"
            raise UsageError(f"the {connection.target} has no system {wanted!r}", hint=f"there are: {there}")
    if not members:
        raise Missing(
            f"the {connection.target} has no system: is the node powered, and known to its BMC?",
            uri=collection,
            path="Members[0]",
        )
    systems = [connection.get(uri) for uri in members]
    # GPU baseboards are systems of their own beside the host, without a BIOS.
    hosts = [one for one in systems if one.find(object, "Bios") is not None] or systems
    if len(hosts) > 1:
        physical = [one for one in hosts if one.find(str, "SystemType") in (None, "Physical")]
        hosts = physical or hosts
    if len(hosts) > 1:
        names = ", ".join(_id(one.uri) for one in hosts)
        raise UsageError(
            f"the {connection.target} has several systems: {names}",
            hint="name the one you mean: --system ID, or system in nodeprep_bmc",
        )
    return hosts[0]


def _part(connection: Connection, system: Resource, link: str, collection: str) -> Resource | None:
    for uri in _candidates(connection, system, link, collection):
        # They tell names and sensors; without them the settings can be read all the same.
        with contextlib.suppress(RedfishError):
            return connection.get(uri)
    return None


def _candidates(connection: Connection, system: Resource, link: str, collection: str) -> Iterator[str]:
    with contextlib.suppress(Malformed):
        for place, entry in enumerate(system.find(list, "Links", link) or ()):
            yield system.as_link(entry, "Links", link, place)
    with contextlib.suppress(RedfishError):
        yield from connection.get(collection).members()


def _identity(root: Resource, system: Resource, manager: Resource | None) -> RedfishIdentity:
    maker = _word(system, "Manufacturer")
    service = _word(root, "Vendor")
    product = _word(root, "Product")
    oem = root.body.get("Oem")
    names = " ".join(str(name) for name in oem) if isinstance(oem, dict) else ""
    model = _word(system, "Model")
    return RedfishIdentity(
        # Model before the service's own words: an AMI service says AMI under every maker.
        vendor=vendor_word(f"{maker} {model}", service, names, product),
        manufacturer=maker or service,
        model=model,
        bios=_word(system, "BiosVersion"),
        bmc_firmware="" if manager is None else _word(manager, "FirmwareVersion"),
        redfish=vendor_word(service, product, names),
    )


def _word(resource: Resource, name: str) -> str:
    # Names for people: a wrong type there must not end a conversation about settings.
    value = resource.body.get(name)
    return value.strip() if isinstance(value, str) else ""


def _id(uri: str) -> str:
    return uri.rstrip("/").rsplit("/", 1)[-1]
