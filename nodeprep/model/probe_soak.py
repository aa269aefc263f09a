"""What a soak was, over all its legs; part of `nodeprep.probe/1`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SoakGap:
    """Time without load, seconds since the soak began."""

    start_s: float
    end_s: float
    why: str
    rebooted: bool
    """The boot id was another one afterwards."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Soak:
    """The same run, leg after leg."""

    wanted_s: float
    """How long it was to last."""
    lasted_s: float
    """From its first start to its result, gaps included."""
    legs: int
    """Runs that left a result."""
    lost_legs: int
    """Runs that did not: whatever they found is not known."""
    gaps: tuple[SoakGap, ...]
