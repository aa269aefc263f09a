"""Names of attributes, made comparable across vendors, and the words that tell what one is for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Protocol

from nodeprep.bmc.redfish.registry import Attribute

GLOBAL = "global"

# Supermicro ends each name with the question's number, to tell apart what is displayed alike.
# Source: AttributeRegistry of SYS-821GE-TNHR ("_1E32"), older firmware "#1E32".
_QUESTION = re.compile(r"[#_][0-9A-F]{4}$")
_MARKS = re.compile(r"\((?:r|tm|c)\)|[®™©]", re.IGNORECASE)
_NOT_ALNUM = re.compile(r"[^a-z0-9]+")
# Setup menus of an adapter, not of the board. Its "SR-IOV" or "Link Speed" is the adapter's own.
_ADAPTER = re.compile(
    r"broadcom|mellanox|connectx|qlogic|emulex|marvell|brcm|mlnx|"
    r"(?:network|ethernet|fibre ?channel|converged) ?adapter|raid ?kit|raid ?controller"
)

# Words around the one that counts: "Intel(R) VT-d", "PCIe ASPM Support (Global)", "SR-IOV Global Enable".
# The names of AMD's reference code ("CbsCmnGnbNbIOMMU", "CbsCmnGnbSMUDfCstates") stand without a display name
# in the registries of Cisco and ASRock Rack.
_BEFORE = (
    "pciexpress", "pcie", "pci", "intel", "amd", "cpu", "processor", "proc", "global", "system", "usb",
    "enable", "support", "bios", "cbs", "cmn", "gnb", "nb", "smu",
)  # fmt: skip
_AFTER = (
    "supported", "support", "enabled", "enable", "control", "ctrl", "ctl", "mode", "globally", "global",
    "settings", "setting", "options", "option", "feature", "capability", "function", "configuration",
)  # fmt: skip

# Machines of a rack mostly have the same names.
REMEMBERED = 1 << 15
# A display name that was cut must still be most of the phrase.
_SHORTEST_CUT, _LEAST_PART = 9, 0.7
_SURE_IN_MENU = 7


@lru_cache(maxsize=REMEMBERED)
def key(text: str) -> str:
    """Text as it is compared: no question number, no (R) marks, lower case letters and digits only."""
    return _NOT_ALNUM.sub("", _MARKS.sub("", _QUESTION.sub("", text.strip())).lower())


def name_keys(name: str) -> tuple[str, ...]:
    """Ways to read a name: whole, and without the menu that Lenovo puts before it ("Power_ASPM")."""
    bare = _QUESTION.sub("", name)
    _, _, rest = bare.partition("_")
    return (key(name), key(rest)) if rest else (key(name),)


def of_an_adapter(attribute: Attribute) -> bool:
    """The attribute belongs to a card and not to the board."""
    return _speaks_of_an_adapter(attribute.name) or _speaks_of_an_adapter(attribute.menu_path)


@lru_cache(maxsize=REMEMBERED)
def _speaks_of_an_adapter(text: str) -> bool:
    return bool(_ADAPTER.search(text.lower()))


@dataclass(frozen=True, slots=True)
class Match:
    """That an attribute is what a knob is about.

    Attributes:
        rank: 0 is best; a worse one is looked at only where there is no better.
        scope: "global", or which slot or port.
        note: What the plan must say when it takes this one.
    """

    rank: int
    scope: str
    note: str = ""


class Matcher(Protocol):
    """Tells whether an attribute is what a knob is about."""

    def __call__(self, attribute: Attribute) -> Match | None:
        """The match; None when it is something else."""

    @property
    def looked_for(self) -> str:
        """What it looks for, for people."""


@dataclass(frozen=True)
class Words:
    """Matches by whole phrases, so that what only mentions the word is left alone.

    Attributes:
        looked_for: What it looks for, for people.
        groups: Phrases as keys, in groups of falling rank.
        ports: Patterns of keys for attributes that there are one of for each slot or port.
        never: Parts of keys that make an attribute something else: of its name and display name, and long
            ones of its menu.
        notes: What to say, by group.
        menu_notes: What to say besides, by a part of the menu's key.
    """

    looked_for: str
    groups: tuple[tuple[str, ...], ...]
    ports: tuple[str, ...] = ()
    never: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    menu_notes: Mapping[str, str] = field(default_factory=dict)

    def __call__(self, attribute: Attribute) -> Match | None:
        """The match; None when it is something else."""
        if of_an_adapter(attribute) or self._is_something_else(attribute):
            return None
        display = key(attribute.display_name)
        keys = {*name_keys(attribute.name), display} - {""}
        for pattern in self._ports:
            if any(pattern.fullmatch(text) for text in keys):
                return Match(0, scope_of(attribute))
        for group, pattern in enumerate(self._phrases):
            note = self._note(attribute, group)
            # A name that says it is better than a display name alone, which firmware gives to several.
            if any(pattern.fullmatch(text) for text in name_keys(attribute.name)):
                return Match(2 * group, GLOBAL, note)
            if pattern.fullmatch(display) or display in self._cut[group]:
                # Slots share a display name; which one it is stands in the menu.
                scope = menu_scope(attribute.menu_path) if self.ports else GLOBAL
                return Match(2 * group + 1, scope, note)
        return None

    def _note(self, attribute: Attribute, group: int) -> str:
        own = self.notes[group] if group < len(self.notes) else ""
        menu = key(attribute.menu_path)
        return "; ".join(
            filter(None, (own, *(text for part, text in self.menu_notes.items() if part in menu)))
        )

    @cached_property
    def _phrases(self) -> tuple[re.Pattern[str], ...]:
        before, after = "|".join(_BEFORE), "|".join(_AFTER)
        return tuple(
            re.compile(f"(?:{before})*(?:{'|'.join(sorted(group, key=len, reverse=True))})(?:{after})*")
            for group in self.groups
        )

    @cached_property
    def _cut(self) -> tuple[frozenset[str], ...]:
        """By group: phrases as a display name has them that was cut to a screen's width."""
        return tuple(
            frozenset(cut for word in group for before in ("", *_BEFORE) for cut in _cuts(f"{before}{word}"))
            for group in self.groups
        )

    @cached_property
    def _ports(self) -> tuple[re.Pattern[str], ...]:
        return tuple(re.compile(pattern) for pattern in self.ports)

    def _is_something_else(self, attribute: Attribute) -> bool:
        own = f"{key(attribute.name)} {key(attribute.display_name)}"
        menu = key(attribute.menu_path)
        # A short part can be inside another word of a menu ("dmi" in "admin").
        return any(part in own or (len(part) >= _SURE_IN_MENU and part in menu) for part in self.never)


def _cuts(phrase: str) -> Iterator[str]:
    """What may be left of a phrase so that it still is most of it."""
    for length in range(_SHORTEST_CUT, len(phrase)):
        if length >= _LEAST_PART * len(phrase):
            yield phrase[:length]


# Source: registries of HPE PciSlot3LinkSpeed, Lenovo PCIeGen_Slot3, NVIDIA Socket0Pcie1...,
# Intel PciePortLinkSpeed_0_3.
_SOCKET_PORT = re.compile(r"socket(\d+)pcie(\d+)")
_SLOT = re.compile(r"slot[\s#_-]*(\d+)", re.IGNORECASE)
_BAY = re.compile(r"nvme[\s_-]*bay[\s_-]*(\d+)", re.IGNORECASE)
_PORT_TAIL = re.compile(r"port_?link_?speed_(.+)$", re.IGNORECASE)
_MENU_PORT = re.compile(r"((?:cpu|socket|iio|port|riser|mcio|ocp)[\w .-]*)$", re.IGNORECASE)
# Source: HPE: ./PciDevConfig/EmbNicConfig.
_MENU_DEVICE = re.compile(r"((?:emb|flexlom|ocp|mezz|nvme)\w*?)config$", re.IGNORECASE)
_NOT_A_PLACE = frozenset(
    {
        "pci", "pcie", "express", "pci-e", "e", "max", "maximum", "target", "static", "link", "speed", "gen",
        "generation", "control", "ctrl", "support", "setting", "settings", "select", "selection", "pmm",
        "global", "limit", "cap", "aspm", "(aspm)", "power", "management", "enable", "of", "the", "to", "for",
    }
)  # fmt: skip
_NAME_NOT_A_PLACE = re.compile(
    r"pciexpress|pcie|pci|maximum|max|target|static|link|speed|generation|gen|control|support|pmm|global|"
    r"limit|aspml1|aspm|enable|advertise"
)


def scope_of(attribute: Attribute, speaking: Iterable[str] = ("speed", "gen", "aspm")) -> str:
    """Which slot or port an attribute is for; "global" when it names none.

    Args:
        speaking: Words that show that a name speaks for itself. A code ("GBT0149") is not a place.
    """
    found = _SOCKET_PORT.search(key(attribute.name))
    if found:
        return f"socket {found[1]} pcie {found[2]}"
    for text in (attribute.display_name, attribute.name):
        for pattern, word in ((_BAY, "nvme bay"), (_SLOT, "slot")):
            numbered = pattern.search(text)
            if numbered:
                return f"{word} {int(numbered[1])}"
    tail = _PORT_TAIL.search(attribute.name)
    if tail:
        return f"port {tail[1]}"
    place = " ".join(word for word in attribute.display_name.split() if word.lower() not in _NOT_A_PLACE)
    if place and key(_NAME_NOT_A_PLACE.sub("", key(place))):
        return place.strip(" :-")
    name = key(attribute.name)
    if any(word in name for word in speaking):
        rest = _NAME_NOT_A_PLACE.sub("", name)
        if rest:
            return rest
    return menu_scope(attribute.menu_path)


def menu_scope(menu_path: str) -> str:
    """Which slot, port or device of the board a menu is for; "global" when it names none."""
    last = re.sub(r"[_]+", " ", menu_path.rstrip("/").rpartition("/")[2])
    numbered = _SLOT.search(last)
    if numbered:
        return f"slot {int(numbered[1])}"
    device = _MENU_DEVICE.search(last)
    if device:
        return device[1]
    port = _MENU_PORT.search(last)
    return port[1].strip() if port and re.search(r"\d", port[1]) else GLOBAL


def same_scope(scope: str, asked: str) -> bool:
    """Whether a scope is the one a person means by `slot=`: its number, or its whole name."""
    return key(scope) in {key(asked), key(f"slot{asked}")}


def natural(scope: str) -> list[tuple[int, str]]:
    """A key to sort places by, slot 2 before slot 10."""
    return [(int(part), "") if part.isdigit() else (0, part) for part in re.split(r"(\d+)", scope)]


def listed(names: Sequence[str], most: int = 6) -> str:
    """Names for a sentence, with the number of those that are left out."""
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"
