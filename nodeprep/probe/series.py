"""The samples of one GPU in columns, and their summary over stretches of the run."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from ..node import nvml_sample, reading
from .stats import stats_reading

_SUMMARISED = (
    "power_w",
    "power_average_w",
    "power_instant_w",
    "temperature_c",
    "memory_temperature_c",
    "margin_c",
    "sm_mhz",
    "utilization_percent",
    "memory_utilization_percent",
    "memory_used_gib",
    "pcie_rx_gbps",
    "pcie_tx_gbps",
    "link_gen",
    "link_width_lanes",
)
# Rates of 32-bit counters that wrap within 90 ms at full speed. Where a busy host read them too seldom, a
# single rate is missing, which is no failure of NVML; the summary is over the others.
_RATES = ("pcie_rx_gbps", "pcie_tx_gbps")
Columns = Dict[str, List[Optional[float]]]
Windows = Sequence[Tuple[float, float]]


class Series:
    """The samples of one GPU.

    Attributes:
        columns: `t_s` is when the sample was begun.
        ends: When it was complete.
        failed: Whether NVML failed to give a value it should have.
        why: For each column that ever lacked a value, the last reason.
        draws: Times and watts of the instantaneous power, read every 20 ms during transients.
        aer: First and last totals of the functions on its path.
        listening: Whether NVML tells of its events.
    """

    def __init__(self) -> None:
        self.columns: Columns = {name: [] for name in ("t_s", *nvml_sample.COLUMNS)}
        self.ends: List[float] = []
        self.failed: List[bool] = []
        self.why: Dict[str, Dict[str, Any]] = {}
        self.draws: List[Tuple[float, float]] = []
        self.aer: List[Dict[str, Any]] = []
        self.listening = reading.error("no sample was taken")

    def add(
        self,
        start_s: float,
        end_s: float,
        sample: Dict[str, Optional[float]],
        failures: Dict[str, Dict[str, Any]],
    ) -> None:
        """Appends one sample; `failures` says of each column without a value why."""
        self.columns["t_s"].append(round(start_s, 3))
        self.ends.append(end_s)
        for name in nvml_sample.COLUMNS:
            self.columns[name].append(sample.get(name))
        missing = {name: why for name, why in failures.items() if sample.get(name) is None}
        broken = [name for name, why in missing.items() if why["state"] == "error" and name not in _RATES]
        self.failed.append(bool(broken))
        self.why.update(missing)


def summary(series: Series, windows: Windows, trouble: str) -> Dict[str, Any]:
    """What nodeprep.probe/1 says of the samples in some stretches; `trouble` is why there may be none."""
    chosen = inside(series, windows)
    nothing = trouble or (
        "no sample fell into the compute phase" if windows else "there was no compute phase"
    )
    masks = [int(mask) for mask in _picked(series, "event_reasons", chosen)]
    document: Dict[str, Any] = {
        name: _column(series, name, chosen, nothing, lambda values: stats_reading(values, ""))
        for name in _SUMMARISED
    }
    document["event_reasons_union"] = _column(series, "event_reasons", chosen, nothing, _union)
    document["event_reason_samples"] = _bits(masks)
    document["samples"] = len(chosen)
    document["errors"] = sum(series.failed[index] for index in chosen)
    document["longest_gap_ms"] = _longest_gap_ms(series, windows)
    return document


def inside(series: Series, windows: Windows) -> List[int]:
    """Samples that were taken wholly within a phase: one that outlasts it may have seen an idle GPU."""
    starts = series.columns["t_s"]
    return [
        index
        for index, t in enumerate(starts)
        if t is not None and any(start <= t and series.ends[index] <= end for start, end in windows)
    ]


def _picked(series: Series, name: str, inside: List[int]) -> List[float]:
    column = series.columns[name]
    return [value for value in (column[index] for index in inside) if value is not None]


def _column(
    series: Series, name: str, inside: List[int], nothing: str, make: Callable[[List[float]], Dict[str, Any]]
) -> Dict[str, Any]:
    values = _picked(series, name, inside)
    if values:
        return make(values)
    if inside and name in series.why:
        return series.why[name]
    return reading.error(nothing)


def _union(values: List[float]) -> Dict[str, Any]:
    union = 0
    for value in values:
        union |= int(value)
    return reading.ok(union)


def _bits(masks: List[int]) -> Dict[str, int]:
    counts: Dict[str, int] = {}
    for mask in masks:
        bit = 1
        while bit <= mask:
            if mask & bit:
                counts["0x%x" % bit] = counts.get("0x%x" % bit, 0) + 1
            bit <<= 1
    return counts


def _longest_gap_ms(series: Series, windows: Windows) -> float:
    """Between two samples, or from an edge of a phase to its nearest sample."""
    longest = 0.0
    for window in windows:
        times = [series.columns["t_s"][index] or 0.0 for index in inside(series, [window])]
        edges = [window[0], *times, window[1]]
        longest = max(longest, *(edges[n + 1] - edges[n] for n in range(len(edges) - 1)))
    return longest * 1000.0
