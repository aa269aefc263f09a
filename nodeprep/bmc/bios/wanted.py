"""What a person wants of a BIOS: `--set KNOB=VALUE[,slot=N]`, and the same from a policy."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from nodeprep.bmc.bios.knob import BiosKnob, knobs
from nodeprep.bmc.bios.meanings import OFF_WORDS, ON_WORDS, generation_of
from nodeprep.errors import PolicyError, Problem

OPTION = "--set"
_SLOT = re.compile(r"^[A-Za-z0-9][A-Za-z0-9 ._-]*$")


@dataclass(frozen=True, slots=True)
class Wanted:
    """A value for one knob.

    Attributes:
        value: One of the knob's values.
        slots: Which slots; empty for all.
    """

    value: str
    slots: tuple[str, ...] = ()


def parse_settings(items: Iterable[str]) -> dict[str, Wanted]:
    """Reads the values of `--set`, in their order.

    Raises:
        PolicyError: Every fault of every item at once.
    """
    found: dict[str, Wanted] = {}
    problems: list[Problem] = []
    for item in items:
        knob_id, faults, wanted = _parse(item)
        if knob_id in found:
            faults = [
                *faults,
                Problem(f"{OPTION} {item}", f"{knob_id} is set twice", "name all slots in one"),
            ]
        problems += faults
        if wanted is not None and not faults:
            found[knob_id] = wanted
    if problems:
        raise PolicyError("BIOS settings", problems)
    return found


def from_policy(bios: Mapping[str, Any]) -> dict[str, Wanted]:
    """The knobs a policy names, None being those it leaves alone.

    Raises:
        PolicyError: Every fault at once.
    """
    found: dict[str, Wanted] = {}
    problems: list[Problem] = []
    for name, value in bios.items():
        if value is None:
            continue
        knob = knobs().get(name)
        if knob is None:
            problems.append(_unknown(name, f"bios.{name}"))
            continue
        text = "auto" if value == "auto" else str(value) if not isinstance(value, bool) else ""
        fault = _value_problem(knob, text or str(value).lower(), f"bios.{name}")
        if fault:
            problems.append(fault)
        else:
            found[name] = Wanted(text)
    if problems:
        raise PolicyError("BIOS settings", problems)
    return found


def _parse(item: str) -> tuple[str, list[Problem], Wanted | None]:
    where = f"{OPTION} {item}"
    setting, *limits = item.split(",")
    name, equals, value = setting.partition("=")
    name, value = name.strip(), value.strip()
    if not equals or not name or not value:
        return (
            name,
            [Problem(where, "is not KNOB=VALUE", "for example pcie_link_gen=4 or iommu=disabled")],
            None,
        )
    knob = knobs().get(name)
    if knob is None:
        return name, [_unknown(name, where)], None
    problems = [fault for fault in (_value_problem(knob, value, where),) if fault]
    slots, faults = _slots(knob, limits, where)
    return name, [*problems, *faults], Wanted(value, slots)


def _unknown(name: str, where: str) -> Problem:
    close = difflib.get_close_matches(name.replace("-", "_").lower(), knobs(), n=1)
    hint = f"did you mean {close[0]}?" if close else f"known: {', '.join(knobs())}"
    return Problem(where, f"{name} is not a BIOS knob", hint)


def _value_problem(knob: BiosKnob, value: str, where: str) -> Problem | None:
    if value in knob.values:
        return None
    meant = value.lower() if value.lower() in knob.values else ""
    if not meant and knob.is_switch and value.lower() in ON_WORDS | OFF_WORDS:
        meant = "enabled" if value.lower() in ON_WORDS else "disabled"
    if not meant and not knob.is_switch:
        generation = generation_of(value)
        meant = str(generation) if str(generation) in knob.values else ""
    hint = f"write {meant}" if meant else f"one of {', '.join(knob.values)}"
    return Problem(where, f"{value} is not a value of {knob.id}", hint)


def _slots(knob: BiosKnob, limits: Iterable[str], where: str) -> tuple[tuple[str, ...], list[Problem]]:
    slots: list[str] = []
    problems: list[Problem] = []
    for limit in limits:
        word, equals, slot = (part.strip() for part in limit.partition("="))
        if word != "slot" or not equals:
            problems.append(Problem(where, f"{limit.strip() or 'nothing'} after the comma is not slot=N"))
        elif not _SLOT.match(slot):
            problems.append(
                Problem(where, f"{slot or 'nothing'} is not a slot", "a number, or a name bios show lists")
            )
        elif not knob.by_slot:
            problems.append(Problem(where, f"{knob.id} is of the whole machine", "leave slot= out"))
        elif slot in slots:
            problems.append(Problem(where, f"slot {slot} is named twice"))
        else:
            slots.append(slot)
    return tuple(slots), problems
