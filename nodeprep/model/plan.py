"""`nodeprep.plan/1`: what would change on one node, and what would not and why."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from nodeprep.model.bios import BiosSetting

ChangeStatus = Literal["ok", "change", "refused", "unsupported", "unknown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One knob on one subject.

    Attributes:
        status: ok = already so; change = apply would write it; refused = a guard forbids it;
            unsupported = this version or this part has no way to set it; unknown = the present
            state could not be read, so nothing can be said.
    """

    knob: str
    subject: str
    """"node", or a PCI address."""
    status: ChangeStatus
    old: str
    new: str
    why: str
    reason: str = ""
    """For refused, unsupported and unknown."""
    risks: tuple[str, ...] = ()
    needs_reboot: bool = False
    attributes: tuple[BiosSetting, ...] = ()
    """For what is done through the BIOS: each attribute with its present, staged and wanted value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The whole document."""

    host: str
    simulated: bool
    profile: str
    policy_digest: str
    changes: tuple[Change, ...]
    schema: Literal["nodeprep.plan/1"] = field(default="nodeprep.plan/1")

    @property
    def in_desired_state(self) -> bool:
        """True only when everything was read and is as it should be."""
        return all(change.status == "ok" for change in self.changes)

    def with_status(self, *wanted: ChangeStatus) -> tuple[Change, ...]:
        """The changes in one of the given states."""
        return tuple(change for change in self.changes if change.status in wanted)
