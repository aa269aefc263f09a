"""Telemetry as compact columns for the charts, and which GPU is the odd one out.

The odd one out is an aid to the eye, not a verdict: verdicts come from checks alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from nodeprep.model.probe import Phase
from nodeprep.model.run import NodeView, TelemetrySeries
from nodeprep.reports._gpus import GpuMark
from nodeprep.reports._text import number, short_address

MAX_POINTS = 600
"""Most points a series: more than a chart has pixels across."""

MIN_POINTS = 80

MIN_SAMPLES = 3
"""Fewer say nothing about how a GPU stands among the others."""

POINT_BUDGET = 400_000
"""Points in the whole page, about 1.2 MB: a rack of 100 nodes gets fewer points a series, not a page that
no browser opens."""

Column = Sequence[float | None]


@dataclass(frozen=True, slots=True)
class Track:
    """The samples of one GPU that have a time; every column as long as `times`, NaN as None."""

    gpu: str
    times: tuple[float, ...]
    columns: Mapping[str, tuple[float | None, ...]]
    phases: tuple[Phase, ...]

    def column(self, name: str) -> tuple[float | None, ...]:
        """A column, all None when there is none of that name."""
        return self.columns.get(name) or (None,) * len(self.times)


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantity:
    """One chart.

    Attributes:
        scale: Steps a unit the figures are rounded to; below what the sensor resolves.
        odd_fraction: Least distance from the other GPUs, relative, for the odd one out.
        odd_least: The same in the quantity's own unit.
        digits: Decimals it is told with.
        always: False: shown only where something about it changes or differs.
    """

    column: str
    title: str
    unit: str
    scale: int
    odd_fraction: float
    odd_least: float
    digits: int = 0
    always: bool = True


QUANTITIES = (
    Quantity(column="power_w", title="Power", unit="W", scale=1, odd_fraction=0.05, odd_least=10),
    Quantity(
        column="temperature_c",
        title="Temperature",
        unit="°C",
        scale=1,
        odd_fraction=0.0,
        odd_least=6,
        digits=1,
    ),
    Quantity(column="sm_mhz", title="SM clock", unit="MHz", scale=1, odd_fraction=0.05, odd_least=30),
    Quantity(
        column="pcie_rx_gbps",
        title="PCIe RX",
        unit="GB/s",
        scale=10,
        odd_fraction=0.1,
        odd_least=0.5,
        digits=1,
    ),
    Quantity(
        column="pcie_tx_gbps",
        title="PCIe TX",
        unit="GB/s",
        scale=10,
        odd_fraction=0.1,
        odd_least=0.5,
        digits=1,
    ),
    Quantity(
        column="link_width_lanes",
        title="PCIe link width",
        unit="lanes",
        scale=1,
        odd_fraction=0.0,
        odd_least=1,
        always=False,
    ),
    Quantity(
        column="replays",
        title="PCIe replays",
        unit="since driver load",
        scale=1,
        odd_fraction=0.0,
        odd_least=10,
        always=False,
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """One chart of one node; the points themselves are in the page's data block."""

    column: str
    title: str
    unit: str
    summary: str
    """What the chart shows, for those who do not see it."""
    odd: tuple[str, ...]
    """One sentence a GPU that stands apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeCharts:
    """All charts of one node, and their data."""

    charts: tuple[Chart, ...]
    data: dict[str, Any]
    phases: str
    """The phases with their times, for those too short to carry their name in a chart."""
    staggered: bool
    """The GPUs were not in the same phase at the same time; a picked GPU shows its own."""
    thinned: str
    """How many samples became how many points; "" when all are there."""


def points_per_series(nodes: Sequence[NodeView]) -> int:
    """Points each series may have so that the page stays within its budget."""
    series = sum(len(node.telemetry) for node in nodes) * sum(quantity.always for quantity in QUANTITIES)
    return max(MIN_POINTS, min(MAX_POINTS, POINT_BUDGET // series)) if series else MAX_POINTS


def node_charts(node: NodeView, gpus: Sequence[GpuMark], max_points: int) -> NodeCharts | None:
    """The charts of one node; None without telemetry."""
    runs = {run.pci_address: run.phases for run in (node.probe.gpus if node.probe else ())}
    tracks = sorted(
        (_track(series, runs.get(series.gpu, ())) for series in node.telemetry), key=lambda track: track.gpu
    )
    tracks = [track for track in tracks if track.times]
    if not tracks:
        return None
    states = {gpu.address: gpu.state for gpu in gpus}
    phases = _middle(tracks)
    most = max(len(track.times) for track in tracks)
    grid = _grid(tracks, max_points) if most > max_points else None
    charts, data = [], {}
    for quantity in QUANTITIES:
        columns = [track.column(quantity.column) for track in tracks]
        seen = {value for column in columns for value in column if value is not None}
        if len(seen) < (1 if quantity.always else 2):
            continue
        figures = [_typical(track, column) for track, column in zip(tracks, columns, strict=True)]
        odd = _odd(quantity, figures)
        charts.append(_chart(quantity, tracks, figures, odd))
        data[quantity.column] = {
            "unit": quantity.unit,
            "scale": quantity.scale,
            "step": not quantity.always,
            "odd": odd,
            "lines": _lines(quantity, node),
            "series": [
                _packed(thin(track.times, column, grid) if grid else column, quantity.scale)
                for track, column in zip(tracks, columns, strict=True)
            ],
        }
    return NodeCharts(
        charts=tuple(charts),
        data={
            "gpus": [short_address(track.gpu) for track in tracks],
            "states": [states.get(track.gpu, "unknown") for track in tracks],
            "times": _packed_times(tracks, grid),
            "phases": phases,
            "own_phases": [_own(track) for track in tracks] if _staggered(tracks, phases) else [],
            "charts": data,
        },
        phases=", ".join(
            f"{name} {number(round(start, 1))}–{number(round(end, 1))} s" for name, start, end in phases
        ),
        staggered=_staggered(tracks, phases),
        thinned=(
            f"{most} samples a series, drawn as {max_points} points that keep the extremes" if grid else ""
        ),
    )


def thin(times: Sequence[float], column: Column, edges: Sequence[float]) -> list[float | None]:
    """A column on a common grid: two points a bucket, its extremes in the order they occurred.

    Args:
        times: Time of each sample, ascending.
        column: The samples; None where one failed.
        edges: Bucket borders, ascending; one more than buckets.

    Returns:
        Two values a bucket; two None where the bucket has no value.
    """
    buckets: list[list[float]] = [[] for _ in range(len(edges) - 1)]
    width = (edges[-1] - edges[0]) / len(buckets)
    for at, value in zip(times, column, strict=False):
        if value is not None and math.isfinite(value):
            buckets[min(len(buckets) - 1, max(0, int((at - edges[0]) / width)))].append(value)
    thinned: list[float | None] = []
    for bucket in buckets:
        if not bucket:
            thinned += [None, None]
            continue
        low, high = min(bucket), max(bucket)
        thinned += [low, high] if bucket.index(low) <= bucket.index(high) else [high, low]
    return thinned


def _track(series: TelemetrySeries, phases: tuple[Phase, ...]) -> Track:
    """The series without samples that have no time; `phases` are taken when it has none of its own."""
    times = series.columns.get("t_s", ())
    kept = [index for index, at in enumerate(times) if at is not None and math.isfinite(at)]

    def pick(column: Column) -> tuple[float | None, ...]:
        values = (column[index] if index < len(column) else None for index in kept)
        return tuple(value if value is not None and math.isfinite(value) else None for value in values)

    return Track(
        series.gpu,
        tuple(float(times[index] or 0.0) for index in kept),
        {name: pick(column) for name, column in series.columns.items()},
        series.phases or phases,
    )


def _grid(tracks: Sequence[Track], max_points: int) -> list[float]:
    first = min(track.times[0] for track in tracks)
    last = max(track.times[-1] for track in tracks)
    buckets = max_points // 2
    return [first + (last - first) * index / buckets for index in range(buckets + 1)]


def _packed(column: Column, scale: int) -> list[int | None]:
    """Rounded figures as differences: few digits, and a plain sum gives them back."""
    packed: list[int | None] = []
    last = 0
    for value in column:
        if value is None or not math.isfinite(value):
            packed.append(None)
            continue
        now = round(value * scale)
        packed.append(now - last)
        last = now
    return packed


def _packed_times(tracks: Sequence[Track], grid: list[float] | None) -> list[list[int | None]]:
    """Milliseconds as differences; a single list when all series share it.

    One loop samples all GPUs, a few milliseconds apart; in a chart that is the same time.
    """
    if grid:
        half = (grid[1] - grid[0]) / 2
        return [_packed([edge + half * (side + 0.5) for edge in grid[:-1] for side in (0, 1)], 1000)]
    shared = all(_same_times(track.times, tracks[0].times) for track in tracks[1:])
    return [_packed(track.times, 1000) for track in (tracks[:1] if shared else tracks)]


def _same_times(times: Sequence[float], others: Sequence[float]) -> bool:
    """Whether each sample lies nearer to its counterpart than to the next one."""
    if len(times) != len(others):
        return False
    period = (others[-1] - others[0]) / max(1, len(others) - 1)
    return all(abs(at - other) < period / 2 or at == other for at, other in zip(times, others, strict=True))


def _own(track: Track) -> list[tuple[str, float, float]]:
    return [(phase.name, round(phase.start_s, 2), round(phase.end_s, 2)) for phase in track.phases]


def _middle(tracks: Sequence[Track]) -> list[tuple[str, float, float]]:
    """Each phase from the median of the GPUs' starts to the median of their ends."""
    spans: dict[str, list[Phase]] = {}
    for track in tracks:
        for phase in track.phases:
            spans.setdefault(phase.name, []).append(phase)
    middle = [
        (
            name,
            round(median(phase.start_s for phase in phases), 2),
            round(median(phase.end_s for phase in phases), 2),
        )
        for name, phases in spans.items()
    ]
    return sorted(middle, key=lambda phase: phase[1:])


def _staggered(tracks: Sequence[Track], middle: Sequence[tuple[str, float, float]]) -> bool:
    """Whether some GPU is out of step by more than a chart shows as a line's width."""
    starts = {name: start for name, start, _ in middle}
    length = max((end for _, _, end in middle), default=0.0)
    return any(
        abs(phase.start_s - starts[phase.name]) > 0.02 * length for track in tracks for phase in track.phases
    )


def _compute_window(track: Track) -> tuple[float, float]:
    """The stretch in which a GPU is compared: its compute phase, else its longest one, else all."""
    compute = next((phase for phase in track.phases if "compute" in phase.name), None)
    chosen = compute or max(track.phases, key=lambda phase: phase.end_s - phase.start_s, default=None)
    return (chosen.start_s, chosen.end_s) if chosen else (-math.inf, math.inf)


def _typical(track: Track, column: Column) -> float | None:
    """Median over the GPU's compute phase, which a ramp does not move; None when hardly sampled."""
    first, last = _compute_window(track)
    values = [
        value
        for at, value in zip(track.times, column, strict=True)
        if value is not None and first <= at <= last
    ]
    return median(values) if len(values) >= MIN_SAMPLES else None


def _odd(quantity: Quantity, figures: Sequence[float | None]) -> list[int]:
    """GPUs whose figure stands apart from the others by more than those scatter among themselves."""
    known = [figure for figure in figures if figure is not None]
    if len(known) < 3:
        return []
    middle = median(known)
    scatter = median(abs(figure - middle) for figure in known)
    least = max(quantity.odd_least, quantity.odd_fraction * abs(middle), 5 * scatter)
    return [
        index for index, figure in enumerate(figures) if figure is not None and abs(figure - middle) >= least
    ]


def _chart(
    quantity: Quantity, tracks: Sequence[Track], figures: Sequence[float | None], odd: Sequence[int]
) -> Chart:
    known = [figure for figure in figures if figure is not None]

    def told(figure: float | None) -> str:
        return number(None if figure is None else round(figure, quantity.digits))

    summary = f"{quantity.title} of {len(tracks)} GPU{'s' * (len(tracks) != 1)} over the probe"
    if known:
        summary += f"; median during compute {told(min(known))} to {told(max(known))} {quantity.unit}"
    return Chart(
        column=quantity.column,
        title=quantity.title,
        unit=quantity.unit,
        summary=summary,
        odd=tuple(
            f"{short_address(tracks[index].gpu)}: {told(figures[index])} {quantity.unit}, "
            f"median of the node {told(median(known))} {quantity.unit}"
            for index in odd
        ),
    )


def _lines(quantity: Quantity, node: NodeView) -> list[list[Any]]:
    """Limits worth a line, once a value."""
    values: dict[float, str] = {}
    if quantity.column == "power_w" and node.probe is not None:
        for run in node.probe.gpus:
            limit = run.telemetry.enforced_limit_w.value
            if limit is not None:
                values[limit] = f"enforced limit {number(limit)} W"
    if quantity.column == "temperature_c":
        facts = node.facts_after or node.facts_before
        for gpu in (facts.nvml.gpus.value if facts else None) or ():
            slowdown = gpu.temperature.slowdown_c.value
            if slowdown is not None:
                values[float(slowdown)] = f"slowdown {slowdown} °C"
    return [[value, label] for value, label in sorted(values.items())]
