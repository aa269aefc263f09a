"""What a BIOS says about one value that it is sent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nodeprep.sim.bmc.messages import Message
from nodeprep.sim.bmc.registry import AttributeRegistry

_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "Boolean": bool,
    "Integer": int,
    "Enumeration": (str, int),
    "String": str,
    "Password": str,
}


class Validator:
    """Judges values by the registry, or by the values there are when there is no registry.

    Args:
        base: Prefix of DMTF's messages.
        unknown_is_value: Say "value not in list" of an attribute that does not exist. Source: OpenBMC.
    """

    def __init__(self, registry: AttributeRegistry | None, base: str, *, unknown_is_value: bool) -> None:
        self._registry = registry
        self._base = base
        self._unknown_is_value = unknown_is_value

    def problem(
        self, name: str, value: Any, current: Mapping[str, Any], after: Mapping[str, Any]
    ) -> Message | None:
        """Why a value cannot be taken; None when it can.

        Args:
            current: Values in force.
            after: Values with everything that waits and the whole batch: what is writable depends on it.
        """
        entry = self._registry.attributes.get(name) if self._registry else None
        if name not in current and entry is None:
            return self._unknown(name)
        if self._registry and self._registry.flag(name, "ReadOnly", after):
            text = f"The property {name} is a read-only property and cannot be assigned a value."
            return self._message("PropertyNotWritable", text, name, name)
        if not _type_fits(entry, value, current.get(name)):
            text = f"The value {value!r} for the property {name} is of a type that it cannot accept."
            return self._message("PropertyValueTypeError", text, name, str(value), name)
        if entry is not None:
            return self._of_entry(name, value, entry, current.get(name))
        return self._of_listed(name, value, current)

    def _of_entry(self, name: str, value: Any, entry: Mapping[str, Any], current: Any) -> Message | None:
        kind = entry.get("Type")
        if kind == "Enumeration":
            allowed = allowed_values(entry, current)
            return None if not allowed or value in allowed else self._not_listed(name, value)
        if kind == "Integer" and isinstance(value, int):
            low, high = entry.get("LowerBound"), entry.get("UpperBound")
            if (isinstance(low, int) and value < low) or (isinstance(high, int) and value > high):
                text = f"The value {value} for the property {name} is not in the supported range."
                return self._message("PropertyValueOutOfRange", text, name, str(value), name)
        if kind == "String" and isinstance(value, str):
            longest, shortest = entry.get("MaxLength"), entry.get("MinLength")
            long = isinstance(longest, int) and len(value) > longest
            short = isinstance(shortest, int) and 0 < len(value) < shortest
            if long or short:
                text = f"The value {value} for the property {name} is of a format that it cannot accept."
                return self._message("PropertyValueFormatError", text, name, value, name)
        return None

    def _of_listed(self, name: str, value: Any, current: Mapping[str, Any]) -> Message | None:
        """Without a registry nothing lists the values, except where the attribute itself does."""
        allowed = current.get(f"{name}@Redfish.AllowableValues")
        if isinstance(allowed, list) and value not in allowed:
            return self._not_listed(name, value)
        return None

    def _unknown(self, name: str) -> Message:
        if self._unknown_is_value:
            return self._not_listed("Attributes", name)
        text = f"The property {name} is not in the list of valid properties for the resource."
        return self._message("PropertyUnknown", text, name, name)

    def _not_listed(self, name: str, value: Any) -> Message:
        text = f"The value {value!r} for the property {name} is not in the list of acceptable values."
        return self._message("PropertyValueNotInList", text, name, str(value), name)

    def _message(self, key: str, text: str, name: str, *args: str) -> Message:
        return Message(f"{self._base}.{key}", text, args, (f"#/Attributes/{name}",))


def allowed_values(entry: Mapping[str, Any], current: Any) -> list[Any]:
    """The values of an enumeration, as this BMC writes them.

    The BMC that reports display names takes display names. Source: Supermicro SYS-821GE, ValueName "0".
    """
    listed = entry.get("Value")
    values = [value for value in listed if isinstance(value, Mapping)] if isinstance(listed, list) else []
    names = [value.get("ValueName") for value in values]
    shown = [value.get("ValueDisplayName") for value in values]
    if current in names:
        return names
    if current in shown:
        return shown
    # A value in force that no list has: some registries leave values out.
    return [*names, current] if current is not None else names


def _type_fits(entry: Mapping[str, Any] | None, value: Any, current: Any) -> bool:
    kind = str(entry.get("Type")) if entry is not None else ""
    if kind in _TYPES:
        wanted = _TYPES[kind]
        # Some registries call Integer what the BMC holds as text; what it holds counts.
        if current is not None and not isinstance(current, wanted):
            wanted = type(current)
    elif current is None:
        return isinstance(value, str | int | bool)
    else:
        wanted = type(current)
    if isinstance(value, bool) and wanted is not bool:
        return False
    return isinstance(value, wanted)
