"""Tells the attributes that limit the speed of PCIe links from all that only sound like them."""

from __future__ import annotations

import re
from functools import lru_cache

from nodeprep.bmc.bios.match import GLOBAL, REMEMBERED, Match, key, of_an_adapter, scope_of
from nodeprep.bmc.bios.meanings import generation_of
from nodeprep.bmc.redfish.registry import Attribute

# Other links than those of PCIe slots.
_OTHER_LINKS = frozenset({"ntb", "sata", "sas", "dmi", "upi", "qpi", "xgmi", "usb", "ethernet"})
# Other moments ("Early Link Speed": before training), and other properties with a generation in their name.
_OTHER_THINGS = frozenset(
    {
        "early", "cxl", "lan", "equalization", "degradation", "bypass", "preset", "compliance", "retimer",
        "tx", "rx", "training", "width", "bifurcation", "error", "autonomous", "downgrade", "test",
    }
)  # fmt: skip
_NEVER_PARTS = ("ntb", "nontransparent", "earlylink", "linkdegradation", "equalization", "xgmi")
_SPEED = re.compile(
    r"linkspeed|pciespeed|pcispeed|expressspeed|pciegen|pcigen|linkgen|maxspeed|targetspeed|speedselection"
)
_PLACE = re.compile(r"pci|slot|riser|mcio|ocp|nvme|u2|oculink|slimsas|mezz|port|genz|m2|pex")
# AMI's word for a slot's limit ("GENZ_1 Max Link Speed") and for that of all ports ("Target Link Speed").
_LIMIT = re.compile(r"(?:max|maximum)linkspeed$")
_TARGET = re.compile(r"targetlinkspeed$")
_STATIC = re.compile(r"speedpmmcontrol")
_TOKENS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")

# Ranks among the attributes that are for all slots: a limit, a target, a static target of the power manager.
_CAP, _AIM, _PMM = 0, 1, 2


class LinkSpeed:
    """Matches attributes whose values are PCIe generations and whose words say that a link gets them."""

    looked_for = (
        "an attribute whose values are PCIe generations (Gen4, 16 GT/s) and that is for PCIe links or a "
        'slot: link speed, maximum speed, PCIe generation. A bare "Link Speed" (NTB), "Early Link Speed" and '
        "settings of equalization or degradation are not it"
    )

    def __call__(self, attribute: Attribute) -> Match | None:
        """The match; None when it is something else."""
        if of_an_adapter(attribute) or _is_something_else(attribute) or not _has_generations(attribute):
            return None
        name, display, menu = (
            key(text) for text in (attribute.name, attribute.display_name, attribute.menu_path)
        )
        own = f"{name} {display}"
        if _STATIC.search(own):
            return Match(_PMM, GLOBAL, "it is a static target for the links of all slots")
        if _TARGET.search(own):
            return Match(_AIM, scope_of(attribute))
        speaks = _SPEED.search(own)
        if not speaks and not (_SPEED.search(menu) and _PLACE.search(own)):
            return None
        if not (_LIMIT.search(display) or _PLACE.search(own) or _PLACE.search(menu)):
            return None
        return Match(_CAP, scope_of(attribute))


def generations_offered(attribute: Attribute) -> set[int]:
    """The generations among the values of an enumeration."""
    found = {generation_of(text) for value in attribute.values for text in (value.display, value.name)}
    return {generation for generation in found if isinstance(generation, int)}


def _has_generations(attribute: Attribute) -> bool:
    """Without a list of values the name has to do."""
    return bool(generations_offered(attribute)) if attribute.values else attribute.type != "Boolean"


def _is_something_else(attribute: Attribute) -> bool:
    own = _words(attribute.name) | _words(attribute.display_name)
    if own & (_OTHER_LINKS | _OTHER_THINGS) or _words(attribute.menu_path) & _OTHER_LINKS:
        return True
    texts = (attribute.name, attribute.display_name, attribute.menu_path)
    if any(part in key(text) for part in _NEVER_PARTS for text in texts):
        return True
    # Source: Gigabyte H262: "Link Speed" alone, with "for NTB Mode" in its help text only.
    bare = key(attribute.display_name) == "linkspeed"
    return bare and bool(re.search(r"\bNTB\b|non-transparent", attribute.help_text, re.IGNORECASE))


@lru_cache(maxsize=REMEMBERED)
def _words(text: str) -> frozenset[str]:
    return frozenset(word.lower() for word in _TOKENS.findall(text))
