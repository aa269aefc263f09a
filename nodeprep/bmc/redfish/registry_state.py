"""What a registry says beyond lists of values: which settings are locked, and what changes by itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from nodeprep.bmc.redfish.registry import Attribute, Registry, Value, truth
from nodeprep.bmc.redfish.registry_dependencies import Condition, Dependency, by_target, holds

Scalar = str | int | float | bool | None
# Settings that change settings that change settings: as deep as any registry seen, and no endless round.
_MOST_ROUNDS = 8


@dataclass(frozen=True, slots=True)
class Flag:
    """ReadOnly, GrayOut or Hidden of a setting, and why."""

    on: bool
    why: str = ""


@dataclass(frozen=True, slots=True)
class Forced:
    """A value that the BIOS itself sets, and why."""

    value: Scalar
    why: str


class RegistryState:
    """A registry's flags and dependencies over the values of one BIOS.

    Args:
        current: The values in effect, to which the registry's flags belong.
    """

    def __init__(self, registry: Registry, current: Mapping[str, Scalar]) -> None:
        self._registry = registry
        self._current = current
        self._rules = by_target(registry.dependencies)
        # By attribute, what looks at it: a batch of two settings concerns a few of some 700 dependencies.
        self._forcing: dict[str, list[Dependency]] = {}
        for dependency in registry.dependencies:
            if dependency.aspect == "CurrentValue":
                for source in dependency.sources:
                    self._forcing.setdefault(source, []).append(dependency)

    def flag(self, name: str, aspect: str, batch: Mapping[str, Scalar] | None = None) -> Flag:
        """ReadOnly, GrayOut or Hidden of a setting as it would be with a batch in effect.

        What cannot be told stays as the registry has it.
        """
        attribute = self._registry.attributes.get(name)
        static = attribute is not None and _static(attribute, aspect)
        rules = self._rules.get((name, aspect), [])
        values = {**self._current, **(batch or {})}
        then = [(rule, self._holds(rule, values)) for rule in rules]
        for rule, held in then:
            if held and truth(rule.value):
                return Flag(True, rule.why)
        for rule, held in then:
            if held and truth(rule.value) is False:
                return Flag(False, rule.why)
        if not static:
            return Flag(False)
        # Dell's flags are those of this moment: one that a rule explains now goes when the rule no longer
        # holds; one that no rule explains is the nature of the setting.
        explained = [rule for rule in rules if truth(rule.value) and self._holds(rule, self._current)]
        unknown = any(held is None and truth(rule.value) for rule, held in then)
        if explained and not unknown:
            return Flag(False, f"no longer {explained[0].why}")
        return Flag(True, explained[0].why if explained else "")

    def effects(self, batch: Mapping[str, Scalar]) -> dict[str, Forced]:
        """What the BIOS would change by itself because of a batch.

        Only by dependencies that did not hold before: one that holds has had its effect.
        """
        values = {**self._current, **batch}
        forced: dict[str, Forced] = {}
        changed = set(batch)
        for _ in range(_MOST_ROUNDS):
            found = {
                rule.attribute: Forced(self._spelt(rule.attribute, rule.value), rule.why)
                for source in changed
                for rule in self._forcing.get(source, ())
                if self._holds(rule, values)
                and not self._holds(rule, self._current)
                and not self._same(rule.attribute, values.get(rule.attribute), rule.value)
            }
            if not found:
                break
            forced.update(found)
            values.update({name: one.value for name, one in found.items()})
            changed = set(found)
        return forced

    def _holds(self, rule: Dependency, values: Mapping[str, Scalar]) -> bool | None:
        return holds(rule, lambda condition: self._asked(condition, values), self._same)

    def _asked(self, condition: Condition, values: Mapping[str, Scalar]) -> Scalar:
        if condition.aspect == "CurrentValue":
            return values.get(condition.attribute)
        attribute = self._registry.attributes.get(condition.attribute)
        if attribute is None:
            return None
        known: Mapping[str, Scalar] = {
            "DefaultValue": attribute.default,
            "ReadOnly": attribute.read_only,
            "Hidden": attribute.hidden,
            "GrayOut": attribute.gray_out,
            "LowerBound": attribute.lower,
            "UpperBound": attribute.upper,
        }
        return known.get(condition.aspect)

    def _same(self, name: str, one: Scalar, other: Scalar) -> bool:
        """Whether two spellings are one value: 3 and "3", true and "true", ValueName and ValueDisplayName."""
        if _plain(one) == _plain(other):
            return True
        entry = self._entry(name, one)
        return entry is not None and entry == self._entry(name, other)

    def _entry(self, name: str, value: Scalar) -> Value | None:
        attribute = self._registry.attributes.get(name)
        text = str(value)
        entries = attribute.values if attribute is not None else ()
        return next((entry for entry in entries if text in (entry.name, entry.display)), None)

    def _spelt(self, name: str, value: Scalar) -> Scalar:
        """A value of the registry as this BIOS spells its own."""
        current, entry = self._current.get(name), self._entry(name, value)
        own = self._entry(name, current)
        if entry is None or own is None or not entry.display:
            return value
        return entry.display if str(current) == own.display != own.name else value


def _static(attribute: Attribute, aspect: str) -> bool:
    return {
        "ReadOnly": attribute.read_only,
        "Hidden": attribute.hidden,
        "GrayOut": attribute.gray_out,
    }[aspect]


def _plain(value: Scalar) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
