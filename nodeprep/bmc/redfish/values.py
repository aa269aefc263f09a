"""Values of an enumeration as they go over the wire, and back: their spelling and their type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from nodeprep.bmc.redfish.registry import Attribute, Registry, Value

Scalar = str | int | float | bool | None
Spelling = Literal["name", "display"]


def usual_spelling(registry: Registry, current: Mapping[str, Scalar]) -> Spelling:
    """Whether a BIOS reports ValueName, as the standard wants it, or ValueDisplayName.

    Source: Supermicro SYS-821GE-TNHR: ValueName is "0", reported and taken is "Disable", for 332 of 336.
    """
    votes = [own_spelling(one, current[name]) for name, one in registry.attributes.items() if name in current]
    return "display" if votes.count("display") > votes.count("name") else "name"


def own_spelling(attribute: Attribute, reported: Scalar) -> Spelling | None:
    """Which of the two a present value is; None when it is both or neither."""
    text = str(reported)
    is_name = any(value.name == text for value in attribute.values)
    is_display = any(value.display == text for value in attribute.values)
    if is_name == is_display:
        return None
    return "name" if is_name else "display"


def spelt(value: Value, attribute: Attribute, current: Scalar, usual: Spelling) -> Scalar:
    """A value as it is to be written: in the spelling and the type of the present one.

    Source: ansible#68251: a BMC refuses text for an integer.

    Args:
        usual: Of this BIOS; counts where the present value does not tell.
    """
    spelling = own_spelling(attribute, current) or usual
    text = value.display if spelling == "display" and value.display else value.name
    if isinstance(current, bool):
        return {"true": True, "false": False}.get(text.lower(), text)
    if isinstance(current, int) and text.lstrip("-").isdecimal():
        return int(text)
    return text


def value_of(attribute: Attribute, reported: Scalar) -> Value | None:
    """The enumeration's value that a reported one is; None when it is outside the enumeration."""
    text = str(reported)
    by_name = [value for value in attribute.values if value.name == text]
    by_display = [value for value in attribute.values if value.display == text]
    return next(iter(by_name or by_display), None)
