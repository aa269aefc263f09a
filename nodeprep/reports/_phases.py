"""The probe's phases besides the model: device memory, steps of load, cool-down; and what a soak was."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nodeprep.model.probe import GpuRun, ProbeResult
from nodeprep.model.probe_phases import BurstPower, HbmWalk, Transients, XidEvent
from nodeprep.model.reading import Reading
from nodeprep.model.run import TelemetrySeries
from nodeprep.reports._figures import Figure, figure
from nodeprep.reports._text import duration, number, percent, short_address

HEADINGS = (
    ("HBM copy GB/s", "of peak"),
    ("HBM GB/s", "read / write"),
    ("HBM walked", "of all"),
    ("Words changed", "passes"),
    ("Peak\u00a0W", "of limit, period"),
    ("Trough\u00a0W", "of limit"),
    ("Bursts differ", "of compared"),
    ("Cooled\u00a0K", "in, half after"),
    ("Xids", "at"),
)
# Seconds of square waves that are drawn, and the most points: a page of a hundred nodes has as many drawings.
_DRAWN_S = 12.0
_MOST_POINTS = 400
_WIDTH, _HEIGHT = 640, 120


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseRow:
    """One GPU."""

    label: str
    figures: tuple[Figure, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultRow:
    """One word that did not keep its value."""

    gpu: str
    offset: str
    pattern: str
    expected: str
    got: str
    again: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Waves:
    """A drawing of one GPU's instantaneous power during its square waves."""

    gpu: str
    points: str
    """Of an SVG polyline."""
    limit_y: float | None
    width: int
    height: int
    top_w: float
    seconds: float
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseTable:
    """All GPUs of one node."""

    rows: tuple[PhaseRow, ...]
    notes: tuple[str, ...]
    faults: tuple[FaultRow, ...]
    soak: tuple[str, ...]
    waves: Waves | None


def table(probe: ProbeResult, telemetry: Sequence[TelemetrySeries]) -> PhaseTable:
    """All there is to say of these phases."""
    runs = sorted(probe.gpus, key=lambda run: run.pci_address)
    rows = tuple(PhaseRow(label=short_address(run.pci_address), figures=_figures(run)) for run in runs)
    notes = [f"{row.label}: {one.note}" for row in rows for one in row.figures if one.note]
    return PhaseTable(
        rows=rows,
        notes=tuple(dict.fromkeys(notes)),
        faults=tuple(fault for run in runs for fault in _faults(run)),
        soak=_soak(probe),
        waves=_waves(runs, telemetry),
    )


def _figures(run: GpuRun) -> tuple[Figure, ...]:
    rates, walk, waves = run.hbm_bandwidth.value, run.hbm_walk, run.transients
    peak = rates.peak_gbps.value if rates else None
    unread = run.hbm_bandwidth if rates is None else None
    return (
        figure(unread or rates.copy_gbps, "HBM copies", _whole, lambda v: percent(v, peak or 0.0))
        if rates
        else figure(run.hbm_bandwidth, "HBM bandwidth", number),
        Figure(text=f"{_rate(rates.read_gbps)} / {_rate(rates.write_gbps)}") if rates else Figure(text=""),
        figure(walk, "HBM walk", lambda w: f"{w.walked_bytes / 2**30:.0f}\u00a0GiB", _part),
        figure(walk, "", lambda w: number(w.errors), _passes, grave=lambda w: w.errors > 0)
        if walk.value
        else Figure(text=""),
        *_steps(waves),
        _cooled(run),
        figure(run.xid_events, "NVML events", _xids, _times, grave=bool),
    )


def _whole(value: float) -> str:
    return number(round(value))


def _rate(value: Reading[float]) -> str:
    return number(round(value.value)) if value.value is not None else "unreadable"


def _part(walk: HbmWalk) -> str:
    return percent(float(walk.walked_bytes), float(walk.total_bytes))


def _passes(walk: HbmWalk) -> str:
    return str(sum(pattern.passes for pattern in walk.patterns.values()))


def _steps(waves: Reading[Transients]) -> tuple[Figure, ...]:
    if waves.value is None:
        return (figure(waves, "steps of load", number), Figure(text=""), Figure(text=""))
    seen = [(each.period_s, each.power.value) for each in waves.value.periods if each.power.value]
    differ = Figure(
        text=number(waves.value.mismatch_count),
        small=number(waves.value.bursts_compared),
        grave=waves.value.mismatch_count > 0,
    )
    if not seen:
        unread = next((each.power for each in waves.value.periods), Reading[BurstPower].error("no period"))
        return (figure(unread, "power at steps of load", str), Figure(text=""), differ)
    period_s, power = max(seen, key=lambda each: each[1].peak_of_limit - each[1].trough_of_limit)
    return (
        Figure(text=f"{power.peak_w:.0f}", small=f"{power.peak_of_limit:.2f}, {period_s:g} s"),
        Figure(text=f"{power.trough_w:.0f}", small=f"{power.trough_of_limit:.2f}"),
        differ,
    )


def _cooled(run: GpuRun) -> Figure:
    if run.cool_down.value is None:
        return figure(run.cool_down, "cool-down", str)
    found = run.cool_down.value
    return figure(
        found.temperature_c,
        "cool-down",
        lambda fall: number(round(fall.first - fall.last, 1)),
        lambda fall: f"{found.seconds:.0f} s, {fall.half_s:.1f} s",
    )


def _xids(events: tuple[XidEvent, ...]) -> str:
    return (
        ", ".join(str(event.xid) if event.xid is not None else f"event {event.kind}" for event in events)
        or "0"
    )


def _times(events: tuple[XidEvent, ...]) -> str:
    return ", ".join(f"{event.t_s:.1f} s" for event in events)


def _faults(run: GpuRun) -> list[FaultRow]:
    if run.hbm_walk.value is None:
        return []
    return [
        FaultRow(
            gpu=short_address(run.pci_address),
            offset=f"{fault.offset_bytes:#x}",
            pattern=fault.pattern,
            expected=fault.expected,
            got=fault.got,
            again="wrong again" if fault.again else "right",
        )
        for fault in run.hbm_walk.value.faults[:20]
    ]


def _soak(probe: ProbeResult) -> tuple[str, ...]:
    soak = probe.soak.value
    if soak is None:
        return ()
    gaps = tuple(
        f"gap of {duration(gap.end_s - gap.start_s)} after {duration(gap.start_s)}: {gap.why}"
        for gap in soak.gaps
    )
    lost = f", {soak.lost_legs} lost" if soak.lost_legs else ""
    first = f"soak of {duration(soak.wanted_s)}: {soak.legs} legs{lost}" + ("" if gaps else ", no gap")
    return (first, *gaps)


def _waves(runs: Sequence[GpuRun], telemetry: Sequence[TelemetrySeries]) -> Waves | None:
    """The GPU with the least step is drawn: it is the one a reader would ask about."""
    series = {one.gpu: one for one in telemetry if len(one.transient_t_s) > 2}
    steps = [(_step(run), run) for run in runs if run.pci_address in series]
    if not steps:
        return None
    run = min(steps, key=lambda each: each[0])[1]
    drawn = series[run.pci_address]
    start = drawn.transient_t_s[0]
    pairs = [
        (t - start, watts)
        for t, watts in zip(drawn.transient_t_s, drawn.transient_power_w, strict=False)
        if t - start <= _DRAWN_S
    ][:_MOST_POINTS]
    limit = run.telemetry.enforced_limit_w.value
    draws = [watts for _, watts in pairs]
    top = max(*draws, limit or 0.0) * 1.05
    seconds = max(pairs[-1][0], 0.001)
    return Waves(
        gpu=short_address(run.pci_address),
        points=" ".join(
            f"{t / seconds * _WIDTH:.0f},{_HEIGHT - watts / top * _HEIGHT:.0f}" for t, watts in pairs
        ),
        limit_y=None if limit is None else round(_HEIGHT - limit / top * _HEIGHT, 1),
        width=_WIDTH,
        height=_HEIGHT,
        top_w=round(top),
        seconds=round(seconds, 1),
        words=f"instantaneous power between {min(draws):.0f} and {max(draws):.0f} W",
    )


def _step(run: GpuRun) -> float:
    waves = run.transients.value
    powers = [each.power.value for each in waves.periods if each.power.value] if waves else []
    return max((power.peak_of_limit - power.trough_of_limit for power in powers), default=0.0)
