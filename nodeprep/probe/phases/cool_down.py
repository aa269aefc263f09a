"""No load, still sampled: how power and temperature fall. Needs no worker, only what telemetry saw."""

from __future__ import annotations

from typing import Any, Dict, List, Tuple

from ...node import reading
from ._phase import Document, Part, Phase, View


class _Part(Part):
    def document(self, view: View) -> Document:
        window = view.cool_down
        if window is None:
            return {"cool_down": reading.error("the load did not come to its end")}
        start_s, end_s = window
        return {
            "cool_down": reading.ok(
                {
                    "seconds": round(end_s - start_s, 3),
                    "power_w": _fall(view, "power_w", start_s, end_s),
                    "temperature_c": _fall(view, "temperature_c", start_s, end_s),
                    "memory_temperature_c": _fall(view, "memory_temperature_c", start_s, end_s),
                }
            )
        }


# Back into the load: the first value is what the fall begins with.
_BEFORE_S = 1.0


def _fall(view: View, column: str, start_s: float, end_s: float) -> Dict[str, Any]:
    """First and last value, and how long half of the fall took."""
    samples: List[Tuple[float, float]] = view.values(column, start_s - _BEFORE_S, end_s)
    if len(samples) < 2:
        return reading.error(view.trouble or "fewer than two samples in the cool-down")
    first, last = samples[0][1], samples[-1][1]
    middle = (first + last) / 2
    half = next(t for t, value in samples if value <= middle or t == samples[-1][0])
    return reading.ok({"first": first, "last": last, "half_s": round(max(0.0, half - start_s), 3)})


PHASE = Phase(name="cool-down", words="load ended", run=None, part=_Part)
