"""What is known of one vendor beyond what its registry tells: rules as data, one file each in vendors/."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from nodeprep.registry import discover


@dataclass(frozen=True, slots=True)
class Fallback:
    """Attributes that do what a knob wants, and more: taken only where nothing matches the knob itself.

    Attributes:
        names: AttributeNames.
        why: Why these.
        risks: What else they do.
    """

    names: tuple[str, ...]
    why: str
    risks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Vendor:
    """Rules of one vendor.

    Attributes:
        id: Name of its file.
        makers: Pattern of what its machines and BMCs call themselves.
        fallbacks: By knob.
        together: By knob: attributes that are one setting in two places and are set to the same.
        codes: By knob and wanted value: integers of BIOSes that come without a registry.
        presets: Attributes that set many others at a time, and the value that leaves those to be set one
            by one.
        absent: By knob: what to say when there is no such attribute.
        risks: By setting ("iommu=disabled"): what it costs on this vendor's machines.
        top_is_auto: A slot's highest generation is not among its values; Auto is.
    """

    id: str
    makers: str
    fallbacks: Mapping[str, Fallback] = field(default_factory=dict)
    together: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    codes: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    presets: Mapping[str, str] = field(default_factory=dict)
    absent: Mapping[str, str] = field(default_factory=dict)
    risks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    top_is_auto: bool = False


def vendors() -> dict[str, Vendor]:
    """All vendors, by id."""
    return discover("nodeprep.bmc.bios.vendors", "VENDOR")


def vendor_of(maker: str) -> Vendor:
    """The rules for a maker, as it calls itself; no rules at all for one that is not known."""
    for entry in vendors().values():
        if re.search(entry.makers, maker, re.IGNORECASE):
            return entry
    return Vendor(id="other", makers="")
