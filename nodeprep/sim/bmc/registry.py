"""The attribute registry as the BIOS reads it: what may be written, and what follows from what."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

_Compare = Callable[[Any, Any], bool]
# A rule that sets one attribute may meet the condition of another; chains in real registries are short.
_LONGEST_CHAIN = 4


def _same(left: Any, right: Any) -> bool:
    # AMI writes "true" where DMTF has true, and 1 where the attribute holds "1".
    return left == right or str(left).lower() == str(right).lower()


def _number(compare: Callable[[float, float], bool]) -> _Compare:
    def result(left: Any, right: Any) -> bool:
        try:
            return compare(float(left), float(right))
        except (TypeError, ValueError):
            return False

    return result


_CONDITIONS: Mapping[str, _Compare] = {
    "EQU": _same,
    "NEQ": lambda left, right: not _same(left, right),
    "GEQ": _number(lambda left, right: left >= right),
    "GTR": _number(lambda left, right: left > right),
    "LEQ": _number(lambda left, right: left <= right),
    "LSS": _number(lambda left, right: left < right),
}


@dataclass(frozen=True, slots=True)
class Rule:
    """One dependency: when its conditions hold, a property of an attribute has a value."""

    attribute: str
    property: str
    value: Any
    conditions: tuple[Mapping[str, Any], ...]

    def holds(self, values: Mapping[str, Any]) -> bool:
        """Whether it applies when the attributes have these values."""
        result = bool(self.conditions)
        for number, condition in enumerate(self.conditions):
            name = str(condition.get("MapFromAttribute"))
            compare = _CONDITIONS.get(str(condition.get("MapFromCondition")))
            wanted = condition.get("MapFromValue")
            met = compare is not None and name in values and compare(values[name], wanted)
            either = number > 0 and condition.get("MapTerms") == "OR"
            result = (result or met) if either else (result and met)
        return result


class AttributeRegistry:
    """One registry.

    Args:
        entries: RegistryEntries.
        at_dump: Values of the attributes when the dump was taken: flags such as ReadOnly are the state of
            that moment, with the dependencies applied. Source: Dell R750, 328 of 682 read-only.
    """

    def __init__(self, entries: Mapping[str, Any], at_dump: Mapping[str, Any]) -> None:
        listed = [entry for entry in entries["Attributes"] if isinstance(entry, Mapping)]
        self.attributes: dict[str, Mapping[str, Any]] = {
            str(entry.get("AttributeName")): entry for entry in listed
        }
        self._rules = tuple(_rules(entries.get("Dependencies")))
        self._at_dump = [rule.holds(at_dump) for rule in self._rules]

    def flag(self, name: str, property_name: str, values: Mapping[str, Any]) -> bool:
        """Whether an attribute is ReadOnly, GrayOut or Hidden when the attributes have these values."""
        static = self.attributes.get(name, {}).get(property_name) is True
        explained = False
        for rule, held in zip(self._rules, self._at_dump, strict=True):
            if rule.attribute != name or rule.property != property_name:
                continue
            if rule.holds(values):
                return _same(rule.value, True)
            explained = explained or held
        # A flag that a rule had set goes with the rule.
        return static and not explained

    def forced(self, before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
        """Values that follow from other values, such as those of a profile.

        Args:
            before: All values until now; what held then is in the values already.
            after: All values from now on.
        """
        result: dict[str, Any] = {}
        held = [rule.holds(before) for rule in self._rules]
        for _ in range(_LONGEST_CHAIN):
            values = {**after, **result}
            new = {
                rule.attribute: rule.value
                for rule, was in zip(self._rules, held, strict=True)
                if rule.property == "CurrentValue" and not was and rule.holds(values)
            }
            new = {name: value for name, value in new.items() if name in after and values[name] != value}
            if not new:
                break
            result |= new
        return result

    def defaults(self) -> dict[str, Any]:
        """The default of each attribute that has one."""
        return {
            name: entry["DefaultValue"]
            for name, entry in self.attributes.items()
            if entry.get("DefaultValue") is not None
        }


def _rules(found: Any) -> Iterator[Rule]:
    for entry in found if isinstance(found, list) else []:
        dependency = entry.get("Dependency") if isinstance(entry, Mapping) else None
        if not isinstance(dependency, Mapping) or not isinstance(dependency.get("MapFrom"), list):
            continue
        conditions = tuple(part for part in dependency["MapFrom"] if isinstance(part, Mapping))
        yield Rule(
            str(dependency.get("MapToAttribute")),
            str(dependency.get("MapToProperty")),
            dependency.get("MapToValue"),
            conditions,
        )
