"""Summary of a series, as several documents have it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    """Summary of a series. All in the series' own unit."""

    count: int
    min: float
    mean: float
    median: float
    p95: float
    max: float
