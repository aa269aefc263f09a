"""The attribute registry of a BIOS: which settings there are, and what they may be set to.

Written by firmware of many hands: null and missing fields, booleans as words, duplicates. What cannot be
read of one attribute is told in `faults` and costs that one attribute only.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from nodeprep.bmc.redfish.registry_dependencies import Dependency, read_dependencies

Scalar = str | int | float | bool | None
# Source: Supermicro X12 to X14: the same setting is "SR-IOVSupport#002B" and "SR_IOVSupport_0047".


@dataclass(frozen=True, slots=True)
class Value:
    """One value of an enumeration.

    Attributes:
        name: ValueName, which the standard sends over the wire.
        display: ValueDisplayName, which one vendor sends instead; empty when there is none.
    """

    name: str
    display: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribute:
    """One setting. ReadOnly, Hidden and GrayOut are its state in the registry, dependencies apart.

    Attributes:
        type: Enumeration, Integer, Boolean, String or Password; of the present value where it is not said.
        step: ScalarIncrement.
        reset_required: None where the registry does not say; a reset is then to be assumed, as always.
        twice: The registry has it more than once, and differently: it cannot be told which one counts.
    """

    name: str
    display_name: str = ""
    menu_path: str = ""
    help_text: str = ""
    warning_text: str = ""
    type: str = "String"
    values: tuple[Value, ...] = ()
    lower: int | None = None
    upper: int | None = None
    step: int | None = None
    min_length: int | None = None
    max_length: int | None = None
    default: Scalar = None
    read_only: bool = False
    hidden: bool = False
    gray_out: bool = False
    write_only: bool = False
    reset_required: bool | None = None
    twice: bool = False


@dataclass(frozen=True, slots=True)
class Registry:
    """All settings, by name.

    Attributes:
        uri: Where it was found; empty when the BMC serves none.
        language: As it says itself.
        absent: The BMC serves none: attributes are then typed by their present values, and enumerations
            have no known values.
        looked_for: Where it was looked for.
        faults: What of it could not be read.
    """

    attributes: Mapping[str, Attribute]
    dependencies: tuple[Dependency, ...] = ()
    id: str = ""
    uri: str = ""
    language: str = ""
    absent: bool = False
    looked_for: tuple[str, ...] = ()
    faults: tuple[str, ...] = field(default=(), repr=False)


def read_registry(
    body: Mapping[str, Any],
    current: Mapping[str, Scalar],
    *,
    uri: str = "",
    looked_for: tuple[str, ...] = (),
) -> Registry:
    """The registry in a resource, which must have RegistryEntries.

    Args:
        current: Present values; they give the type where the registry has none.
    """
    entries = body.get("RegistryEntries")
    entries = entries if isinstance(entries, Mapping) else {}
    faults: list[str] = []
    attributes = _attributes(_list(entries.get("Attributes")), current, faults)
    dependencies = read_dependencies(_list(entries.get("Dependencies")), faults)
    return Registry(
        attributes,
        dependencies,
        _text(body.get("Id")),
        uri,
        _text(body.get("Language")),
        looked_for=looked_for,
        faults=tuple(faults),
    )


def no_registry(
    current: Mapping[str, Scalar],
    offered: Mapping[str, tuple[str, ...]] | None = None,
    *,
    looked_for: tuple[str, ...] = (),
) -> Registry:
    """What can be said without a registry: the names, and the types of the present values.

    Args:
        offered: Values that the BIOS resource itself names, by attribute.
    """
    known = offered or {}
    attributes = {
        name: Attribute(
            name=name,
            type="Enumeration" if name in known else type_of(value),
            values=tuple(Value(text) for text in known.get(name, ())),
        )
        for name, value in current.items()
    }
    return Registry(attributes, absent=True, looked_for=looked_for)


def type_of(value: Scalar) -> str:
    """The registry's name for the type of a present value."""
    if isinstance(value, bool):
        return "Boolean"
    return "Integer" if isinstance(value, int) else "String"


def truth(value: Any) -> bool | None:
    """A boolean of a registry; AMI writes the words. None for what is none."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        return {"true": True, "false": False}.get(value.strip().lower())
    return None


def _attributes(
    entries: Iterable[Any], current: Mapping[str, Scalar], faults: list[str]
) -> dict[str, Attribute]:
    found: dict[str, Attribute] = {}
    for place, entry in enumerate(entries):
        if not isinstance(entry, Mapping) or not isinstance(entry.get("AttributeName"), str):
            faults.append(f"RegistryEntries.Attributes[{place}] has no AttributeName")
            continue
        one = _attribute(entry, current)
        other = found.get(one.name)
        if other is None:
            found[one.name] = one
        elif _differs(one, other):
            faults.append(f"{one.name} is in the registry more than once, and differently")
            found[one.name] = _doubtful(other)
    return found


def _attribute(entry: Mapping[str, Any], current: Mapping[str, Scalar]) -> Attribute:
    name = entry["AttributeName"]
    values = tuple(_value(value) for value in _list(entry.get("Value")) if value is not None)
    kind = _text(entry.get("Type"))
    if not kind:
        kind = "Enumeration" if values else type_of(current.get(name))
    return Attribute(
        name=name,
        display_name=_text(entry.get("DisplayName")),
        menu_path=_text(entry.get("MenuPath")),
        help_text=_text(entry.get("HelpText")),
        warning_text=_text(entry.get("WarningText")),
        type=kind,
        values=values,
        lower=_number(entry.get("LowerBound")),
        upper=_number(entry.get("UpperBound")),
        step=_number(entry.get("ScalarIncrement")),
        min_length=_number(entry.get("MinLength")),
        max_length=_number(entry.get("MaxLength")),
        default=_scalar(entry.get("DefaultValue")),
        # Immutable: tells of the machine, for example its serial number.
        read_only=bool(truth(entry.get("ReadOnly")) or truth(entry.get("Immutable"))),
        hidden=bool(truth(entry.get("Hidden"))),
        gray_out=bool(truth(entry.get("GrayOut"))),
        write_only=bool(truth(entry.get("WriteOnly"))),
        reset_required=truth(entry.get("ResetRequired")),
    )


def _value(entry: Any) -> Value:
    if not isinstance(entry, Mapping):
        return Value(_text(entry))
    name, display = _text(entry.get("ValueName")), _text(entry.get("ValueDisplayName"))
    return Value(name or display, display)


def _differs(one: Attribute, other: Attribute) -> bool:
    return (one.type, one.values, one.lower, one.upper, one.read_only) != (
        other.type,
        other.values,
        other.lower,
        other.upper,
        other.read_only,
    )


def _doubtful(attribute: Attribute) -> Attribute:
    return dataclasses.replace(attribute, twice=True)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)


def _number(value: Any) -> int | None:
    # Some write bounds as text; 0x10 among them.
    if isinstance(value, str):
        try:
            return int(value, 0)
        except ValueError:
            return None
    return int(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _scalar(value: Any) -> Scalar:
    return value if isinstance(value, (str, int, float, bool)) else None
