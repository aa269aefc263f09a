"""How a node's GPUs hang together, as a drawing with what was measured on its edges.

From top to bottom: NUMA nodes, root ports, PCIe switches, GPUs, NVLink. A box spans the GPUs below it, so
that what several of them share is what is wide.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import median

from nodeprep.model.probe_peers import Peers
from nodeprep.model.reading import Reading
from nodeprep.model.run import NodeView
from nodeprep.reports._gpus import GpuMark, GpuState
from nodeprep.reports._text import number, short_address
from nodeprep.reports._topology_figures import Figures

COLUMN, GAP, MARGIN = 132, 12, 8
BOX, EDGE = 42, 44
LINE = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """A rectangle with up to two lines of text, in user units of the drawing."""

    x: int
    y: int
    width: int
    height: int
    kind: str
    title: str
    note: str = ""
    state: GpuState | str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A vertical connection with up to two labels beside it."""

    x: int
    top: int
    bottom: int
    kind: str
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix:
    """Copies between GPUs: the sender's row, the receiver's column, GB/s one way."""

    gpus: tuple[str, ...]
    rows: tuple[tuple[str, tuple[tuple[str, bool], ...]], ...]
    """Label and cells; a cell is its text and whether it stands out."""

    @property
    def odd(self) -> bool:
        """Whether any cell stands out."""
        return any(is_odd for _, cells in self.rows for _, is_odd in cells)


@dataclass(frozen=True, slots=True, kw_only=True)
class Topology:
    """The drawing of one node."""

    width: int
    height: int
    boxes: tuple[Box, ...]
    lines: tuple[Line, ...]
    summary: str
    legend: tuple[str, ...]
    matrix: Matrix | None
    notes: tuple[str, ...]
    """What could not be measured, and why."""


def draw(node: NodeView, gpus: Sequence[GpuMark]) -> Topology | None:
    """The drawing; None when the PCI bus was not read."""
    facts = node.facts_after or node.facts_before
    paths = facts.pci.gpu_paths.value if facts else None
    if facts is None or not paths:
        return None
    measured = node.probe.peers if node.probe else Reading.error("the probe did not run")
    figures = Figures(
        facts, measured.value, {run.pci_address: run for run in node.probe.gpus} if node.probe else {}
    )
    states = {mark.address: mark.state for mark in gpus}
    columns = sorted(paths, key=lambda path: (figures.numa(path.gpu), path.hops))
    rows = [tuple(figures.shown(path.hops)) for path in columns]
    order = [path.gpu for path in columns]
    boxes, lines, height = _tree(figures, order, rows, states)
    width = 2 * MARGIN + len(order) * COLUMN + (len(order) - 1) * GAP
    return Topology(
        width=width,
        height=height,
        boxes=tuple(boxes),
        lines=tuple(lines),
        summary=f"{len(order)} GPUs, " + "; ".join(figures.summary()),
        legend=tuple(figures.summary()),
        matrix=_matrix(figures.peers) if figures.peers else None,
        notes=()
        if figures.peers or measured.state == "not_supported"
        else (f"GPUs together: {measured.detail}",),
    )


def _tree(
    figures: Figures, order: Sequence[str], rows: Sequence[tuple[str, ...]], states: dict[str, GpuState]
) -> tuple[list[Box], list[Line], int]:
    """Boxes and lines from the top down, and the height."""
    depth = max(len(row) for row in rows)
    boxes: list[Box] = []
    lines: list[Line] = []
    for numa, columns in _runs([str(figures.numa(gpu)) for gpu in order]):
        title = f"NUMA node {numa}" if numa != "-1" else "host"
        note = figures.together([order[column] for column in columns])
        boxes.append(_box(columns, 0, "numa", title, f"all at once {note}" if note else ""))
    for level in range(depth):
        for port, columns in _runs([row[level] if level < len(row) else "" for row in rows]):
            members = [order[column] for column in columns]
            if not port:
                # No port at this depth: the line from above goes on down to the GPU.
                lines.extend(_line((column,), level, "pcie") for column in columns)
                lines.extend(_through(column, level) for column in columns)
                continue
            kind, title = figures.port(port)
            shared = figures.shared(port, members)
            note = f"{len(members)} together {shared}" if shared else ""
            boxes.append(_box(columns, level + 1, kind, f"{title} {short_address(port)}", note))
            labels = (figures.link(port),) if kind == "switch" else ()
            lines.append(_line(columns, level, "pcie", labels))
    for column, gpu in enumerate(order):
        lines.append(_line((column,), depth, "pcie", (figures.loaded_link(gpu), figures.lone(gpu))))
        boxes.append(_gpu(figures, column, depth + 1, gpu, states.get(gpu, "unknown")))
    height = _top(depth + 1) + BOX + MARGIN
    if any(figures.nvlinks(gpu) for gpu in order):
        lines.extend(
            _line((column,), depth + 1, "nvlink", (figures.nvlinks(gpu), figures.sent(gpu)))
            for column, gpu in enumerate(order)
            if figures.nvlinks(gpu)
        )
        title = "NVLink, each GPU to each" if figures.switched() else "NVLink between some GPUs"
        boxes.append(_box(range(len(order)), depth + 2, "nvlink", title, "; ".join(figures.summary())))
        height = _top(depth + 2) + BOX + MARGIN
    return boxes, lines, height


def _gpu(figures: Figures, column: int, level: int, gpu: str, state: GpuState) -> Box:
    run = figures.runs.get(gpu)
    shown = []
    if run is not None and run.achieved_tflops.value is not None:
        shown.append(f"{number(round(run.achieved_tflops.value))} TFLOP/s")
    if run is not None and run.telemetry.power_w.value is not None:
        shown.append(f"{number(round(run.telemetry.power_w.value.mean))} W")
    return _box((column,), level, "gpu", f"GPU {short_address(gpu)}", ", ".join(shown), state=state)


def _runs(keys: Sequence[str]) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Neighbouring columns with the same key."""
    for key, columns in groupby(range(len(keys)), key=keys.__getitem__):
        yield key, tuple(columns)


def _left(column: int) -> int:
    return MARGIN + column * (COLUMN + GAP)


def _top(level: int) -> int:
    return MARGIN + level * (BOX + EDGE)


def _box(
    columns: Sequence[int], level: int, kind: str, title: str, note: str = "", *, state: GpuState | str = ""
) -> Box:
    left = _left(columns[0])
    return Box(
        x=left,
        y=_top(level),
        width=_left(columns[-1]) + COLUMN - left,
        height=BOX,
        kind=kind,
        title=title,
        note=note,
        state=state,
    )


def _line(columns: Sequence[int], level: int, kind: str, labels: tuple[str, ...] = ()) -> Line:
    """From a box of a level down to the next one; of a single column to the left: labels need room."""
    x = _left(columns[0]) + LINE
    if len(columns) > 1:
        x = (_left(columns[0]) + _left(columns[-1]) + COLUMN) // 2
    top = _top(level) + BOX
    return Line(x=x, top=top, bottom=top + EDGE, kind=kind, labels=tuple(text for text in labels if text))


def _through(column: int, level: int) -> Line:
    """Past a level that has no box in this column."""
    top = _top(level + 1)
    return Line(x=_left(column) + LINE, top=top, bottom=top + BOX, kind="pcie")


def _matrix(peers: Peers) -> Matrix:
    """The bandwidth of every ordered pair; those more than 5 % below the median stand out."""
    rates = {(pair.source, pair.target): pair.gbps for pair in peers.pairs}
    known = [rate.value for rate in rates.values() if rate.value is not None]
    middle = median(known) if known else 0.0

    def cell(source: str, target: str) -> tuple[str, bool]:
        rate = rates.get((source, target))
        if source == target:
            return "", False
        if rate is None or rate.value is None:
            return "none", True
        return number(round(rate.value, 1)), rate.value < 0.95 * middle

    return Matrix(
        gpus=tuple(short_address(gpu) for gpu in peers.gpus),
        rows=tuple(
            (short_address(source), tuple(cell(source, target) for target in peers.gpus))
            for source in peers.gpus
        ),
    )
