"""Whether an attribute can be written, now and together with other changes, and what would make it so.

ReadOnly, Hidden and GrayOut are not properties of an attribute but its state under the present values:
most of a registry's ReadOnly attributes are writable after one preset was changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from nodeprep.bmc.bios.attributes import BiosView
from nodeprep.bmc.redfish.registry import Attribute, Scalar
from nodeprep.bmc.redfish.registry_state import Forced

_SAID = {"ReadOnly": "read-only", "GrayOut": "grayed out", "Hidden": "hidden"}


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why an attribute cannot be written.

    Attributes:
        reason: In a sentence, with what would lift it.
        hidden: It is hidden: for a slot or port this means that there is nothing to set.
        second_phase: It can be written after the other changes took effect, by another reset.
    """

    reason: str
    hidden: bool = False
    second_phase: bool = False


def obstacle(
    view: BiosView, attribute: Attribute, batch: Mapping[str, Scalar], presets: Mapping[str, str]
) -> Obstacle | None:
    """Why an attribute cannot be written; None when it can.

    Args:
        batch: The values other knobs of the same plan write.
        presets: Attributes that set many others, and the value that sets none (see Vendor).
    """
    if attribute.twice:
        return Obstacle(f"{attribute.name} is in the registry twice, and differently: which one counts?")
    for aspect in _SAID:
        found = _by_flag(view, attribute.name, aspect, batch, presets)
        if found is not None:
            return found
    return None


def forced(view: BiosView, values: Mapping[str, Scalar]) -> dict[str, Forced]:
    """Attributes that would get another value by themselves because of values that are written."""
    staged = view.staged_values
    anyway = view.state.effects(staged)
    found = view.state.effects({**staged, **values})
    return {name: one for name, one in found.items() if name in view.current and name not in anyway}


def _by_flag(
    view: BiosView, name: str, aspect: str, batch: Mapping[str, Scalar], presets: Mapping[str, str]
) -> Obstacle | None:
    staged = view.staged_values
    then = view.state.flag(name, aspect, {**staged, **batch})
    said = f"{name} is {_SAID[aspect]}"
    if then.on:
        if batch and not view.state.flag(name, aspect, staged).on:
            return Obstacle(f"{name} becomes {_SAID[aspect]} by this same plan, as then {then.why}")
        why = f" while {then.why}" if then.why else "; the registry names no condition that would lift it"
        return Obstacle(f"{said}{why}{_presets(view, name, aspect, presets)}", aspect == "Hidden")
    now = view.state.flag(name, aspect)
    if now.on:
        return Obstacle(
            f"{said} while {now.why}: it is written after that and needs one more reset", second_phase=True
        )
    return None


def _presets(view: BiosView, name: str, aspect: str, presets: Mapping[str, str]) -> str:
    """Which presets hold the attribute, and what would free it."""
    rules = view.rules.get((name, aspect), ())
    held_by = sorted({source for rule in rules for source in rule.sources if source in presets})
    in_force = [preset for preset in held_by if view.current.get(preset) not in (None, presets[preset])]
    if not in_force:
        return ""
    free = " and ".join(f"{preset} to {presets[preset]}" for preset in in_force)
    return f". Set {free} first: a preset sets many others, so nodeprep does not change it by itself"
