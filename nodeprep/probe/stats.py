"""Summary of a series, in the series' own unit."""

from __future__ import annotations

import math
from typing import Any, Dict, Sequence

from ..node import reading


def summary(values: Sequence[float]) -> Dict[str, Any]:
    """Count, least, mean, median, 95th percentile (nearest rank) and greatest of at least one value."""
    ordered = sorted(values)
    count = len(ordered)
    middle = count // 2
    median = ordered[middle] if count % 2 else (ordered[middle - 1] + ordered[middle]) / 2
    return {
        "count": count,
        "min": float(ordered[0]),
        "mean": math.fsum(ordered) / count,
        "median": float(median),
        "p95": float(ordered[max(0, math.ceil(0.95 * count) - 1)]),
        "max": float(ordered[-1]),
    }


def stats_reading(values: Sequence[float], why_none: str) -> Dict[str, Any]:
    """A reading of the summary; an error with the given reason when there are no values."""
    return reading.ok(summary(values)) if values else reading.error(why_none)
