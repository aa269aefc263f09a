"""BIOS settings as a BMC has them: what is in effect, what is staged, and where changes go."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from nodeprep.bmc.redfish.connection import Connection
from nodeprep.bmc.redfish.errors import Malformed, Missing, Refused
from nodeprep.bmc.redfish.messages import Message, read_messages
from nodeprep.bmc.redfish.resource import Resource, json_path, local_path
from nodeprep.bmc.redfish.service import Service

Scalar = str | int | float | bool | None
SETTINGS = "@Redfish.Settings"
# Source: AMI, Supermicro, Lenovo, HPE, Dell: where it is when Bios does not say.
_USUAL_NAMES = ("Settings", "SD", "Pending")
# Properties of a flat body that are no settings. Source: iLO 4 and Supermicro X11.
_NOT_SETTINGS = frozenset(
    {"AttributeRegistry", "Description", "Id", "Modified", "Name", "SettingsResult", "Type"}
)
_VALUE, _OFFERED = "current_value", "AllowableValues"


@dataclass(frozen=True, slots=True, kw_only=True)
class BiosSettings:
    """The settings of one BIOS.

    Attributes:
        resource: Bios itself.
        settings: The settings resource as it was read: the one whose ETag goes into If-Match. None when
            its GET gives nothing, which on some AMI firmware means that nothing is staged.
        write_uris: Where a change may be written, the likeliest first; more than one only when Bios does
            not name its settings resource and none answered.
        current: Values in effect. None is a value the BMC does not tell (Dell: passwords).
        pending: Staged values that differ from those in effect.
        flat: The settings stand in the body itself, without "Attributes" (iLO 4, Supermicro X11).
        objects: Names of settings that are objects with a current_value (Cray EX).
        offered: Values such objects name, by setting.
        registry_name: AttributeRegistry; empty when Bios does not say.
        apply_times: SupportedApplyTimes; empty when it says nothing.
        applied_messages: What the BMC says of the settings applied last (HPE: at the last POST).
        applied_time: When that was, as written; empty when it does not say.
    """

    resource: Resource
    settings: Resource | None
    write_uris: tuple[str, ...]
    current: Mapping[str, Scalar]
    pending: Mapping[str, Scalar]
    flat: bool = False
    objects: frozenset[str] = frozenset()
    offered: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    registry_name: str = ""
    apply_times: tuple[str, ...] = ()
    applied_messages: tuple[Message, ...] = ()
    applied_time: str = ""

    @property
    def uri(self) -> str:
        """Of Bios."""
        return self.resource.uri

    @property
    def effective(self) -> dict[str, Scalar]:
        """The values after the next reset, if nothing more is staged."""
        return {**self.current, **self.pending}

    def differences(self, wanted: Mapping[str, Scalar]) -> dict[str, Scalar]:
        """What of the wanted values is not staged yet, and not in effect without being overruled.

        Against what is staged, not only what is in effect: a staged change is taken back by staging the
        value in effect. Source: bmc-toolbox/bmclib#468.
        """
        effective = self.effective
        missing = object()
        return {
            name: value for name, value in wanted.items() if not _same(effective.get(name, missing), value)
        }

    def body(self, changes: Mapping[str, Scalar], *, apply_time: str = "") -> dict[str, Any]:
        """The body of a PATCH with these changes, in the shape this BMC has.

        Args:
            apply_time: For example "OnReset", where the BMC needs it; "" sends none.
        """
        values: dict[str, Any] = {
            name: {_VALUE: value} if name in self.objects else value for name, value in changes.items()
        }
        body: dict[str, Any] = values if self.flat else {"Attributes": values}
        if apply_time:
            body = {"@Redfish.SettingsApplyTime": {"ApplyTime": apply_time}, **body}
        return body


def read_bios(connection: Connection, service: Service) -> BiosSettings:
    """The settings as they are now.

    Raises:
        Missing: The BMC has no BIOS settings over Redfish, for example for want of newer firmware.
        Malformed: It has, and they cannot be read.
        BmcUnreachable: No answer.
    """
    resource = _bios(connection, service)
    values, flat = _values(resource)
    current, objects, offered = _scalars(values, resource)
    settings, write_uris = _settings(connection, resource)
    about = resource.find(dict, SETTINGS) or {}
    return BiosSettings(
        resource=resource,
        settings=settings,
        write_uris=write_uris,
        current=current,
        pending=_pending(settings, current, flat=flat),
        flat=flat,
        objects=objects,
        offered=offered,
        registry_name=resource.find(str, "AttributeRegistry") or "",
        apply_times=tuple(str(one) for one in resource.find(list, SETTINGS, "SupportedApplyTimes") or ()),
        applied_messages=read_messages({"@Message.ExtendedInfo": about.get("Messages") or []}),
        applied_time=str(about.get("Time") or ""),
    )


def _bios(connection: Connection, service: Service) -> Resource:
    system = service.system
    uri = system.find_link("Bios") or f"{system.uri.rstrip('/')}/Bios"
    try:
        return connection.get(uri)
    except Missing as error:
        # Source: dell/iDRAC-Redfish-Scripting#7: firmware before Redfish BIOS.
        raise Missing(
            f"{error.message}: this BMC has no BIOS settings over Redfish; newer firmware may have them",
            uri=uri,
            status=error.status,
        ) from error


def _values(resource: Resource) -> tuple[Mapping[str, Any], bool]:
    attributes = resource.find(dict, "Attributes")
    if attributes is not None:
        return attributes, False
    flat = {
        name: value
        for name, value in resource.body.items()
        if "@" not in name and name not in _NOT_SETTINGS and not isinstance(value, (dict, list))
    }
    if not flat:
        raise Missing(f"{resource.uri} has no Attributes", uri=resource.uri, path="Attributes")
    return flat, True


def _scalars(
    values: Mapping[str, Any], resource: Resource
) -> tuple[dict[str, Scalar], frozenset[str], dict[str, tuple[str, ...]]]:
    current: dict[str, Scalar] = {}
    objects: set[str] = set()
    offered: dict[str, tuple[str, ...]] = {}
    for name, value in values.items():
        if "@" in name:
            continue
        scalar = value
        if isinstance(value, Mapping) and _VALUE in value:
            objects.add(name)
            scalar = value[_VALUE]
            listed = value.get(_OFFERED)
            if isinstance(listed, list):
                offered[name] = tuple(str(one) for one in listed)
        if scalar is not None and not isinstance(scalar, (str, int, float, bool)):
            # A list or an object of an unknown kind is no setting that could be judged or written.
            continue
        current[name] = scalar
    if not current:
        raise Malformed(
            f"{resource.uri} has no setting with a value", uri=resource.uri, path=json_path(("Attributes",))
        )
    return current, frozenset(objects), offered


def _settings(connection: Connection, bios: Resource) -> tuple[Resource | None, tuple[str, ...]]:
    named = _named_settings(bios)
    if named:
        return _read(connection, named), (named,)
    if SETTINGS not in bios.body and any(
        isinstance(value, Mapping) and _VALUE in value
        for value in (bios.find(dict, "Attributes") or {}).values()
    ):
        # Cray EX: no settings resource by design; Bios itself is written.
        return bios, (bios.uri,)
    base = bios.uri.rstrip("/")
    probed = [f"{base}/{name}" for name in _USUAL_NAMES]
    for uri in probed:
        found = _read(connection, uri)
        if found is not None:
            return found, (uri,)
    # SD of some AMI firmware takes a PATCH and has nothing to read; others take it at Bios (X11, Cray EX).
    return None, (f"{base}/SD", f"{base}/Settings", bios.uri)


def _named_settings(bios: Resource) -> str | None:
    named = bios.find_link(SETTINGS, "SettingsObject")
    if named:
        return named
    for path in (("links", "Settings"), ("Links", "Settings")):
        older = bios.find_link(*path)
        if older:
            return local_path(older)
    return None


def _read(connection: Connection, uri: str) -> Resource | None:
    try:
        return connection.get(uri)
    # 405: it can be written only.
    except Missing:
        return None
    except Refused as error:
        if error.status in (400, 405):
            return None
        raise


def _pending(settings: Resource | None, current: Mapping[str, Scalar], *, flat: bool) -> dict[str, Scalar]:
    """Staged values; some list all settings there, some only the changed ones."""
    if settings is None:
        return {}
    # AMI and Supermicro leave Attributes out while nothing is staged.
    staged = settings.body if flat else settings.find(dict, "Attributes")
    found: dict[str, Scalar] = {}
    for name, value in (staged or {}).items():
        scalar = value.get(_VALUE) if isinstance(value, Mapping) else value
        if name not in current or scalar is None or isinstance(scalar, (dict, list)):
            continue
        if not _same(scalar, current[name]):
            found[name] = scalar
    return found


def _same(one: Any, other: Any) -> bool:
    # True == 1 in Python.
    return bool(one == other) and isinstance(one, bool) == isinstance(other, bool)
