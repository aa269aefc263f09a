"""Samples of all GPUs during the whole run: columns for the file, a summary of the compute phase."""

from __future__ import annotations

import threading
import time
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from ..node import nvml_sample, reading
from .files import telemetry_name
from .stats import stats_reading

SCHEMA = "nodeprep.telemetry/1"
_SUMMARISED = (
    "power_w",
    "power_instant_w",
    "temperature_c",
    "memory_temperature_c",
    "margin_c",
    "sm_mhz",
    "utilization_percent",
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
    """

    def __init__(self) -> None:
        self.columns: Columns = {name: [] for name in ("t_s", *nvml_sample.COLUMNS)}
        self.ends: List[float] = []
        self.failed: List[bool] = []
        self.why: Dict[str, Dict[str, Any]] = {}

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


class Telemetry:
    """Samples in a thread of its own, so that NVML may hang without hanging the probe.

    Args:
        root: Where NVML is.
        addresses: The GPUs.
        period_s: From the start of one sample to the start of the next.
        started: time.monotonic() of the run's start.
    """

    def __init__(self, root: str, addresses: Sequence[str], period_s: float, started: float) -> None:
        self._root = root
        self._period_s = period_s
        self._started = started
        self._series = {address: Series() for address in addresses}
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._trouble = ""
        self._thread = threading.Thread(target=self._run, name="telemetry", daemon=True)

    def start(self) -> None:
        """Begins to sample."""
        self._thread.start()

    def stop(self, patience_s: float) -> None:
        """Ends sampling; a thread stuck in NVML is left behind."""
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join(timeout=patience_s)

    def latest(self, address: str, column: str) -> Optional[float]:
        """The last value of a column, None when there is none."""
        with self._lock:
            values = self._series[address].columns[column]
            return values[-1] if values else None

    def document(self, address: str, simulated: bool, phases: List[Dict[str, Any]]) -> Dict[str, Any]:
        """The samples as nodeprep.telemetry/1."""
        with self._lock:
            columns = {name: list(values) for name, values in self._series[address].columns.items()}
        return {
            "schema": SCHEMA,
            "gpu": address,
            "simulated": simulated,
            "period_ms": self._period_s * 1000.0,
            "columns": columns,
            "phases": phases,
        }

    @property
    def trouble(self) -> str:
        """Why sampling ended early; "" when it did not."""
        with self._lock:
            return self._trouble

    def values(self, address: str, column: str, start_s: float, end_s: float) -> List[Tuple[float, float]]:
        """Times and values of a column that were sampled wholly within a stretch of the run."""
        with self._lock:
            series = self._series[address]
            return [
                (series.columns["t_s"][index] or 0.0, value)
                for index in _inside(series, [(start_s, end_s)])
                for value in [series.columns[column][index]]
                if value is not None
            ]

    def summary(self, address: str, windows: Windows, enforced_limit_w: Dict[str, Any]) -> Dict[str, Any]:
        """What nodeprep.probe/1 says of the compute phases.

        Args:
            address: The GPU.
            windows: Start and end of each in seconds of the run.
            enforced_limit_w: Reading of the power limit.
        """
        with self._lock:
            document = _summary(self._series[address], windows, self._trouble)
        document["file"] = telemetry_name(address)
        document["period_ms"] = self._period_s * 1000.0
        document["enforced_limit_w"] = enforced_limit_w
        return document

    def _run(self) -> None:
        try:
            with nvml_sample.Sampler(self._root, list(self._series)) as sampler:
                self._sample_until_stopped(sampler)
        except Exception as error:  # telemetry that ends early must be said, and must not end the load
            with self._lock:
                self._trouble = "telemetry stopped: %s: %s" % (type(error).__name__, error)

    def _sample_until_stopped(self, sampler: nvml_sample.Sampler) -> None:
        due = time.monotonic()
        while not self._stop.wait(max(0.0, due - time.monotonic())):
            begun = time.monotonic() - self._started
            samples = sampler.sample()
            done = time.monotonic() - self._started
            with self._lock:
                for address, sample in samples.items():
                    self._series[address].add(begun, done, sample, sampler.failures(address))
            # A late sample does not bring a burst of samples after it.
            due = max(due + self._period_s, time.monotonic())


def _summary(series: Series, windows: Windows, trouble: str) -> Dict[str, Any]:
    inside = _inside(series, windows)
    nothing = trouble or (
        "no sample fell into the compute phase" if windows else "there was no compute phase"
    )
    masks = [int(mask) for mask in _picked(series, "event_reasons", inside)]
    document: Dict[str, Any] = {
        name: _column(series, name, inside, nothing, lambda values: stats_reading(values, ""))
        for name in _SUMMARISED
    }
    document["event_reasons_union"] = _column(series, "event_reasons", inside, nothing, _union)
    document["event_reason_samples"] = _bits(masks)
    document["samples"] = len(inside)
    document["errors"] = sum(series.failed[index] for index in inside)
    document["longest_gap_ms"] = _longest_gap_ms(series, windows)
    return document


def _inside(series: Series, windows: Windows) -> List[int]:
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
        times = [series.columns["t_s"][index] or 0.0 for index in _inside(series, [window])]
        edges = [window[0], *times, window[1]]
        longest = max(longest, *(edges[n + 1] - edges[n] for n in range(len(edges) - 1)))
    return longest * 1000.0
