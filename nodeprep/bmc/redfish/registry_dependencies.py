"""What depends on what in a BIOS: settings that lock, hide or change others.

A registry's flags are those of one moment. Whether a setting can be written depends on others, which may be
part of the same change: two PCIe settings of a Dell are read-only until SysProfile is Custom.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Scalar = str | int | float | bool | None
_OPERATORS: Mapping[str, Callable[[int], bool]] = {
    # On the sign of the comparison.
    "EQU": lambda sign: sign == 0,
    "NEQ": lambda sign: sign != 0,
    "GTR": lambda sign: sign > 0,
    "GEQ": lambda sign: sign >= 0,
    "LSS": lambda sign: sign < 0,
    "LEQ": lambda sign: sign <= 0,
}


@dataclass(frozen=True, slots=True)
class Condition:
    """One MapFrom.

    Attributes:
        aspect: CurrentValue, or another property of the attribute.
        operator: EQU, NEQ, GTR, GEQ, LSS or LEQ.
        value: None where the registry gives none; the condition then decides nothing.
    """

    attribute: str
    aspect: str
    operator: str
    value: Scalar

    def __str__(self) -> str:
        words = {"EQU": "is", "NEQ": "is not"}.get(self.operator, self.operator)
        return f"{self.attribute} {words} {self.value}"


@dataclass(frozen=True, slots=True)
class Dependency:
    """When one of the groups of conditions holds, `aspect` of `attribute` becomes `value`.

    Attributes:
        attribute: MapToAttribute. Not DependencyFor, in which AMI and HPE name the source.
        groups: Any of them; of each, all conditions.
    """

    attribute: str
    aspect: str
    value: Scalar
    groups: tuple[tuple[Condition, ...], ...]

    @property
    def why(self) -> str:
        """Its conditions, for people."""
        return " or ".join(" and ".join(map(str, group)) for group in self.groups)

    @property
    def sources(self) -> frozenset[str]:
        """The attributes it looks at."""
        return frozenset(condition.attribute for group in self.groups for condition in group)


def read_dependencies(entries: list[Any], faults: list[str]) -> tuple[Dependency, ...]:
    """The dependencies of a registry; one that cannot be read is told in `faults`."""
    found: list[Dependency] = []
    for place, entry in enumerate(entries):
        dependency = _dependency(entry)
        if dependency is None:
            faults.append(f"RegistryEntries.Dependencies[{place}] cannot be read")
        else:
            found.append(dependency)
    return tuple(found)


def holds(
    dependency: Dependency, ask: Callable[[Condition], Scalar], same: Callable[[str, Scalar, Scalar], bool]
) -> bool | None:
    """Whether its conditions hold; None when that cannot be told.

    Args:
        ask: What a condition looks at; None when it is not known.
        same: Whether two spellings of a value of an attribute mean the same.
    """
    groups = [
        _all([_true(condition, ask(condition), same) for condition in group]) for group in dependency.groups
    ]
    if True in groups:
        return True
    return None if None in groups else False


def _all(conditions: list[bool | None]) -> bool | None:
    if False in conditions:
        return False
    return None if None in conditions else True


def _true(condition: Condition, found: Scalar, same: Callable[[str, Scalar, Scalar], bool]) -> bool | None:
    if found is None or condition.value is None or condition.operator not in _OPERATORS:
        return None
    if condition.operator in ("EQU", "NEQ"):
        return same(condition.attribute, found, condition.value) == (condition.operator == "EQU")
    one, other = _number(found), _number(condition.value)
    if one is None or other is None:
        return None
    return _OPERATORS[condition.operator]((one > other) - (one < other))


def _dependency(entry: Any) -> Dependency | None:
    inner = entry.get("Dependency") if isinstance(entry, Mapping) else None
    if not isinstance(inner, Mapping):
        return None
    attribute, target = inner.get("MapToAttribute"), inner.get("MapToProperty")
    listed = inner.get("MapFrom")
    if not isinstance(attribute, str) or not isinstance(target, str) or not isinstance(listed, list):
        return None
    conditions = [_condition(condition) for condition in listed]
    known = [condition for condition in conditions if condition is not None]
    if not known or len(known) < len(conditions):
        return None
    groups = _grouped(known, [_term(condition) for condition in listed])
    return Dependency(attribute, target, _scalar(inner.get("MapToValue")), groups)


def _condition(entry: Any) -> Condition | None:
    attribute = entry.get("MapFromAttribute") if isinstance(entry, Mapping) else None
    if not isinstance(attribute, str):
        return None
    return Condition(
        attribute,
        str(entry.get("MapFromProperty") or "CurrentValue"),
        str(entry.get("MapFromCondition") or "EQU").upper(),
        _scalar(entry.get("MapFromValue")),
    )


def _term(entry: Mapping[str, Any]) -> str:
    return str(entry.get("MapTerms") or "").upper()


def _grouped(conditions: list[Condition], terms: list[str]) -> tuple[tuple[Condition, ...], ...]:
    """From left to right, as the standard wants it, to "any of all of".

    A term joins its condition with the one before (HPE, AMI) or with the next one (Lenovo). Without terms it
    is OR. Source: a Dell R750: OR explains the captured ReadOnly of 47 settings with such rules, AND of 15.
    """
    with_next = bool(terms[0])
    groups: list[tuple[Condition, ...]] = [(conditions[0],)]
    for place, condition in itertools.islice(enumerate(conditions), 1, None):
        if (terms[place - 1] if with_next else terms[place]) == "AND":
            groups = [(*group, condition) for group in groups]
        else:
            groups.append((condition,))
    return tuple(groups)


def by_target(dependencies: tuple[Dependency, ...]) -> dict[tuple[str, str], list[Dependency]]:
    """By attribute and aspect that they change."""
    found: dict[tuple[str, str], list[Dependency]] = {}
    for dependency in dependencies:
        found.setdefault((dependency.attribute, dependency.aspect), []).append(dependency)
    return found


def _number(value: Scalar) -> float | None:
    try:
        return None if isinstance(value, bool) or value is None else float(value)
    except ValueError:
        return None


def _scalar(value: Any) -> Scalar:
    return value if isinstance(value, (str, int, float, bool)) else None
