"""One vendor-neutral BIOS knob: what it may be set to, which attributes it is, what that can cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from nodeprep.bmc.bios.match import Matcher
from nodeprep.registry import discover

SWITCH = ("enabled", "disabled")
GENERATIONS = ("1", "2", "3", "4", "5", "6", "auto")


@dataclass(frozen=True, slots=True, kw_only=True)
class BiosKnob:
    """One knob.

    Attributes:
        id: Its name in policies and on the command line; that of its file.
        title: For people.
        values: What it can be set to.
        matcher: Which attributes it is.
        prefer: Where there is one for all slots and one for each: which is set.
        by_slot: `slot=` can limit it.
        on: Words (as keys) that mean enabled, the first the best, besides the usual ones.
        off: Words that mean disabled, besides the usual ones.
        auto_is_on: "Auto" is enabled where no value says so plainer.
        binary: An integer of 0 or 1 without a list of values is off or on.
        implied_by: An attribute that, switched off, leaves this knob nothing to do.
        risks: By wanted value; "*" for all.
    """

    id: str
    title: str
    matcher: Matcher
    values: tuple[str, ...] = SWITCH
    prefer: Literal["global", "slots"] = "global"
    by_slot: bool = False
    on: tuple[str, ...] = ()
    off: tuple[str, ...] = ()
    auto_is_on: bool = False
    binary: bool = True
    implied_by: Matcher | None = None
    risks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def is_switch(self) -> bool:
        """Enabled or disabled, as all but the PCIe generation."""
        return self.values == SWITCH

    def risks_of(self, wanted: str) -> tuple[str, ...]:
        """What a value can cost."""
        return (*self.risks.get(wanted, ()), *self.risks.get("*", ()))


def knobs() -> dict[str, BiosKnob]:
    """All knobs, by id."""
    return discover("nodeprep.bmc.bios.knobs", "KNOB")
