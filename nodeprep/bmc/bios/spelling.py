"""A value of an enumeration as it goes over the wire, and back."""

from __future__ import annotations

from nodeprep.bmc.redfish.registry import Attribute, Scalar, Value
from nodeprep.bmc.redfish.values import Spelling, own_spelling


def spelt(value: Value, attribute: Attribute, current: Scalar, usual: Spelling) -> Scalar:
    """A value as it is to be written: in the spelling and the type of the present one.

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
