"""A wanted value as this BIOS takes it: its spelling and its type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from nodeprep.bmc.failures import BmcRefused
from nodeprep.bmc.redfish.registry import Attribute, Registry, Value, truth

Scalar = str | int | float | bool | None
Spelling = Literal["name", "display"]


class ValueNotOffered(BmcRefused):
    """The setting cannot have this value; nothing was sent."""


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


def wire_value(attribute: Attribute, wanted: Scalar, current: Scalar, usual: Spelling = "name") -> Scalar:
    """A wanted value in the spelling and type that this BIOS takes.

    The value it has now is always taken, even one outside its own enumeration (AMI's PrmSgxSize):
    else a restore could not bring it back.

    Args:
        wanted: In any spelling: ValueName, ValueDisplayName, other case; a number or a boolean as text.
        current: What it has now, whose type the BMC takes (ansible#68251: it refuses text for an integer).
        usual: Of this BIOS; counts where the present value does not tell.

    Raises:
        ValueNotOffered: With what it can be set to.
    """
    if attribute.type == "Password":
        raise ValueNotOffered(f"{attribute.name} is a password, which nodeprep does not set")
    if wanted is None:
        raise ValueNotOffered(f"{attribute.name} cannot be set to nothing")
    if type(wanted) is type(current) and wanted == current:
        return wanted
    if attribute.values:
        return _of_enumeration(attribute, wanted, current, usual)
    if attribute.type == "Boolean" or isinstance(current, bool):
        return _boolean(attribute, wanted)
    if attribute.type == "Integer" or (isinstance(current, int) and not isinstance(current, bool)):
        number = _integer(attribute, wanted)
        return str(number) if isinstance(current, str) else number
    return _text(attribute, wanted)


def _of_enumeration(attribute: Attribute, wanted: Scalar, current: Scalar, usual: Spelling) -> Scalar:
    value = _chosen(attribute, str(wanted).lower() if isinstance(wanted, bool) else str(wanted))
    spelling = own_spelling(attribute, current) or usual
    text = value.display if spelling == "display" and value.display else value.name
    if isinstance(current, bool):
        flag = truth(text)
        return text if flag is None else flag
    if isinstance(current, int) and text.lstrip("-").isdecimal():
        return int(text)
    return text


def _chosen(attribute: Attribute, text: str) -> Value:
    # In this order: "1" may be the name of one value and the display of another.
    for exact in (True, False):
        for by_name in (True, False):
            found = [value for value in attribute.values if _matches(value, text, by_name, exact)]
            if len(found) == 1 or (found and exact):
                return found[0]
    offered = ", ".join(dict.fromkeys(value.display or value.name for value in attribute.values))
    raise ValueNotOffered(f"{attribute.name} cannot be {text!r}", hint=f"one of {offered}")


def _matches(value: Value, text: str, by_name: bool, exact: bool) -> bool:
    known = value.name if by_name else value.display
    return known == text if exact else known.casefold() == text.casefold()


def _boolean(attribute: Attribute, wanted: Scalar) -> bool:
    flag = truth(wanted)
    if flag is None and wanted in (0, 1, "0", "1"):
        flag = bool(int(str(wanted)))
    if flag is None:
        raise ValueNotOffered(f"{attribute.name} cannot be {wanted!r}", hint="true or false")
    return flag


def _integer(attribute: Attribute, wanted: Scalar) -> int:
    text = str(wanted).strip()
    if isinstance(wanted, bool) or not text.removeprefix("-").isdecimal():
        raise ValueNotOffered(f"{attribute.name} cannot be {wanted!r}", hint="a whole number")
    number = int(text)
    lower, upper, step = attribute.lower, attribute.upper, attribute.step
    if (lower is not None and number < lower) or (upper is not None and number > upper):
        raise ValueNotOffered(f"{attribute.name} cannot be {number}", hint=f"from {lower} to {upper}")
    if step and step > 1 and (number - (lower or 0)) % step:
        raise ValueNotOffered(f"{attribute.name} cannot be {number}", hint=f"in steps of {step}")
    return number


def _text(attribute: Attribute, wanted: Scalar) -> str:
    text = str(wanted)
    shortest, longest = attribute.min_length, attribute.max_length
    if (shortest is not None and len(text) < shortest) or (longest and len(text) > longest):
        raise ValueNotOffered(
            f"{attribute.name} cannot be {text!r}", hint=f"from {shortest or 0} to {longest} characters"
        )
    return text
