"""A BIOS as the knobs see it: its registry, the values in effect and those that are staged. Asks nobody."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from nodeprep.bmc.redfish.registry import Attribute, Registry, Scalar, type_of
from nodeprep.bmc.redfish.registry_dependencies import Dependency, by_target
from nodeprep.bmc.redfish.registry_state import RegistryState
from nodeprep.model import bios as documents


@dataclass(frozen=True, kw_only=True)
class BiosView:
    """One BIOS.

    Attributes:
        current: Values in effect.
        pending: Values staged for the next reset; those that only repeat the current ones may be in it.
    """

    registry: Registry
    current: Mapping[str, Scalar]
    pending: Mapping[str, Scalar] = field(default_factory=dict)

    @cached_property
    def present(self) -> tuple[Attribute, ...]:
        """Attributes this machine has. Registries cover a family of machines; a value says who is here."""
        known = self.registry.attributes
        return tuple(
            known.get(name) or Attribute(name=name, type=type_of(value))
            for name, value in self.current.items()
        )

    @property
    def not_here(self) -> tuple[Attribute, ...]:
        """Attributes the registry knows and this machine has not."""
        return tuple(entry for name, entry in self.registry.attributes.items() if name not in self.current)

    @property
    def registry_state(self) -> documents.RegistryState:
        """For documents."""
        return "absent" if self.registry.absent else "found"

    @cached_property
    def state(self) -> RegistryState:
        """What depends on what, over the values in effect."""
        return RegistryState(self.registry, self.current)

    @cached_property
    def rules(self) -> Mapping[tuple[str, str], list[Dependency]]:
        """Dependencies by the attribute and the property that they change."""
        return by_target(self.registry.dependencies)

    @cached_property
    def staged_values(self) -> dict[str, Scalar]:
        """All that the next reset would change by itself."""
        return {name: value for name in self.pending if (value := self.staged(name)) is not None}

    def staged(self, name: str) -> Scalar:
        """The staged value of an attribute; None when nothing else than the current one is staged."""
        value = self.pending.get(name)
        return None if value == self.current.get(name) else value
