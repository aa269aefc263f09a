"""The probe's result as a table, one GPU a row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nodeprep.model.probe import GpuRun, ProbeResult
from nodeprep.model.reading import Reading
from nodeprep.reports._figures import Figure, figure
from nodeprep.reports._gpus import GpuMark, GpuState
from nodeprep.reports._text import duration, number, percent, short_address


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeRow:
    """One GPU."""

    label: str
    state: GpuState
    figures: tuple[Figure, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MismatchRow:
    """One block whose bits differed."""

    gpu: str
    iteration: int
    block: int
    expected: str
    got: str
    confirmed: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeTable:
    """The probe of one node."""

    facts: tuple[tuple[str, str], ...]
    problem: str
    hint: str
    injected: str
    rows: tuple[ProbeRow, ...]
    notes: tuple[str, ...]
    mismatches: tuple[MismatchRow, ...]
    more_mismatches: int


HEADINGS = (
    ("State", ""),
    ("Iterations", ""),
    ("Iteration\u00a0s", "median, p95"),
    ("TFLOP/s", "of ceiling"),
    ("Power\u00a0W", "mean, of limit"),
    ("GPU\u00a0°C", "max"),
    ("SM\u00a0MHz", "mean"),
    ("Copies GB/s", "alone, to / from"),
    ("Copies GB/s", "loaded, to / from"),
    ("Bits differ", "of iterations"),
    ("Non-finite", "values"),
    ("Copy errors", "of checks"),
    ("Samples", "longest gap"),
    ("Clock reasons", "samples"),
)


def table(probe: ProbeResult, gpus: Sequence[GpuMark]) -> ProbeTable:
    """All there is to say of a probe result without its telemetry."""
    states = {gpu.address: gpu.state for gpu in gpus}
    rows = tuple(
        ProbeRow(
            label=short_address(run.pci_address),
            state=states.get(run.pci_address, "unknown"),
            figures=_figures(run),
        )
        for run in sorted(probe.gpus, key=lambda run: run.pci_address)
    )
    notes: dict[str, list[str]] = {}
    for row in rows:
        for shown in row.figures:
            if shown.note and row.label not in notes.setdefault(shown.note, []):
                notes[shown.note].append(row.label)
    mismatches = _mismatches(probe)
    total = sum(run.digests.value.mismatch_count for run in probe.gpus if run.digests.value is not None)
    return ProbeTable(
        facts=_facts(probe),
        problem=probe.error or ("" if probe.state == "completed" else f"the probe is {probe.state}"),
        hint=probe.hint,
        injected=probe.injected,
        rows=rows,
        notes=tuple(
            f"{'every GPU' if len(labels) == len(rows) > 1 else ', '.join(labels)}: {note}"
            for note, labels in notes.items()
        ),
        mismatches=mismatches,
        more_mismatches=max(0, total - len(mismatches)),
    )


def _facts(probe: ProbeResult) -> tuple[tuple[str, str], ...]:
    work = probe.workload
    return (
        ("state", probe.state),
        ("ran for", duration(probe.duration_s)),
        ("level", probe.level),
        ("backend", probe.backend),
        (
            "workload",
            f"{work.name}: {work.image_width} × {work.image_height}, batch {work.batch}, {work.dtype}, width "
            f"{work.width}, depth {work.depth}, FFN {work.ffn}, {work.heads} heads, patch {work.patch}, "
            f"seed {work.seed}, {work.launch} launch",
        ),
        ("versions", ", ".join(f"{name} {version}" for name, version in probe.versions.items())),
    )


def _figures(run: GpuRun) -> tuple[Figure, ...]:
    telemetry, copies = run.telemetry, run.copies
    return (
        Figure(text=run.state, note=run.error, grave=run.state in ("failed", "interrupted")),
        Figure(text=str(run.iterations)),
        figure(run.iteration_s, "iteration time", lambda s: number(s.median), lambda s: number(s.p95)),
        figure(
            run.achieved_tflops,
            "TFLOP/s",
            number,
            lambda value: percent(value, run.ceiling_tflops.value or 0.0),
        ),
        figure(
            telemetry.power_w,
            "power",
            lambda s: number(round(s.mean, 1)),
            lambda s: percent(s.mean, telemetry.enforced_limit_w.value or 0.0),
        ),
        figure(telemetry.temperature_c, "temperature", lambda s: number(s.max)),
        figure(telemetry.sm_mhz, "SM clock", lambda s: number(round(s.mean))),
        _pair(copies.alone_h2d_gbps, copies.alone_d2h_gbps, "copies alone"),
        _pair(copies.during_h2d_gbps, copies.during_d2h_gbps, "copies under load"),
        figure(
            run.digests,
            "bitwise comparison",
            lambda d: str(d.mismatch_count),
            lambda d: str(d.iterations_compared),
            grave=lambda d: d.mismatch_count > 0,
        ),
        figure(run.non_finite_values, "non-finite values", number, grave=lambda count: count > 0),
        Figure(
            text=number(copies.content_errors),
            small=f"{number(copies.content_checks)}",
            grave=copies.content_errors > 0,
        ),
        Figure(
            text=number(telemetry.samples),
            small=f"{number(round(telemetry.longest_gap_ms))} ms",
            note=f"telemetry samples that failed: {telemetry.errors}" if telemetry.errors else "",
        ),
        figure(
            telemetry.event_reasons_union,
            "clock reasons",
            lambda mask: f"{mask:#x}",
            lambda _: ", ".join(f"{bit} × {count}" for bit, count in telemetry.event_reason_samples.items()),
        ),
    )


def _pair(there: Reading[float], back: Reading[float], what: str) -> Figure:
    for value in (there, back):
        if value.value is None:
            return figure(value, what, number)
    return Figure(text=f"{number(there.value)} / {number(back.value)}")


def _mismatches(probe: ProbeResult) -> tuple[MismatchRow, ...]:
    confirmed = {True: "yes", False: "no, the repeat was right", None: "not repeated"}
    return tuple(
        MismatchRow(
            gpu=short_address(run.pci_address),
            iteration=mismatch.iteration,
            block=mismatch.block,
            expected=mismatch.expected,
            got=mismatch.got,
            confirmed=confirmed[mismatch.confirmed],
        )
        for run in probe.gpus
        if run.digests.value is not None
        for mismatch in run.digests.value.mismatches[:20]
    )
