"""What a value of an attribute means, whatever a vendor spells it like."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, Literal

from nodeprep.bmc.bios.match import REMEMBERED, key
from nodeprep.bmc.redfish.registry import Scalar

AUTO: Final = "auto"
"""The firmware, or another attribute, decides."""
MAXIMUM: Final = "maximum"
"""As fast as it goes."""
Generation = int | Literal["auto", "maximum"]

ON_WORDS: Final = frozenset({"enabled", "enable", "on", "yes", "true", "1", "forceenabled", "forceenable"})
OFF_WORDS: Final = frozenset(
    {"disabled", "disable", "off", "no", "false", "0", "forcedisabled", "forcedisable"}
)
AUTO_WORDS: Final = frozenset({"auto", "automatic"})

# "PerPortCtrl": HPE's word for "each slot's own setting counts".
_GENERATION_AUTO = frozenset({*AUTO_WORDS, "perportctrl", "perportcontrol", "perport"})
_GENERATION_MAXIMUM = frozenset(
    {"maximum", "max", "maxspeed", "maximumspeed", "maxsupported", "maximumsupported"}
)
_GEN = re.compile(r"gen(?:eration)?[\s_-]*([1-6])(?![0-9])(?:\.0)?", re.IGNORECASE)
_GTS = re.compile(r"(\d+(?:\.\d+)?)\s*GT", re.IGNORECASE)
# Source: PCI Express Base Specification 6.0, Supported Link Speeds Vector.
_OF_GTS = {2.5: 1, 5.0: 2, 8.0: 3, 16.0: 4, 32.0: 5, 64.0: 6}


def word_of(value: Scalar, attribute_name: str = "") -> str:
    """A value as a bare word. Some firmware puts the attribute's name before it ("PCIS007Enabled").

    Source: AttributeRegistry of Lenovo's GB300 NVL.
    """
    text = "true" if value is True else "false" if value is False else str(value)
    if attribute_name and text.startswith(attribute_name) and text != attribute_name:
        text = text[len(attribute_name) :]
    return key(text)


@lru_cache(maxsize=REMEMBERED)
def generation_of(text: str) -> Generation | None:
    """The PCIe generation a value names; None when it names none, or two that differ."""
    word = key(text)
    if word in _GENERATION_AUTO:
        return AUTO
    if word in _GENERATION_MAXIMUM:
        return MAXIMUM
    found = {int(number) for number in _GEN.findall(text)}
    rates = [float(rate) for rate in _GTS.findall(text)]
    found |= {_OF_GTS.get(rate, 0) for rate in rates}
    return found.pop() if len(found) == 1 and 0 not in found else None


def respelt(text: str, generation: int) -> str | None:
    """The same spelling with another generation ("GEN5" and 4 give "GEN4"); None where none is spelt."""
    if not isinstance(generation_of(text), int):
        return None
    rate = next(rate for rate, number in _OF_GTS.items() if number == generation)
    new = _GEN.sub(lambda found: found[0].replace(found[1], str(generation), 1), text)
    return _GTS.sub(
        lambda found: found[0].replace(found[1], f"{rate:.1f}" if "." in found[1] else f"{rate:g}"), new
    )


SWITCH_SPELLINGS = (
    ("Enabled", "Disabled"),
    ("Enable", "Disable"),
    ("On", "Off"),
    ("Yes", "No"),
    ("True", "False"),
    ("1", "0"),
)


def opposite_spelling(current: str, *, on: bool) -> str | None:
    """On or off in the spelling of a present value; None when that says neither."""
    for pair in SWITCH_SPELLINGS:
        for change in (str, str.lower, str.upper):
            spelt = [change(word) for word in pair]
            if current in spelt:
                return spelt[0] if on else spelt[1]
    return None
