"""How a node's GPUs hang together, as a drawing with what was measured on its edges.

From top to bottom: NUMA nodes, root ports, PCIe switches, GPUs, NVLink. A box spans the GPUs below it, so
that what several of them share is what is wide.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import median

from nodeprep.model.facts import NodeFacts, PciDevice
from nodeprep.model.probe import GpuRun
from nodeprep.model.probe_peers import CopyRound, Peers
from nodeprep.model.reading import Reading
from nodeprep.model.run import NodeView
from nodeprep.reports._gpus import GpuMark, GpuState
from nodeprep.reports._text import link, number, short_address

COLUMN, GAP, MARGIN = 132, 12, 8
BOX, EDGE = 42, 44
_SWITCH_PORTS = ("upstream_port", "pcie_to_pci_bridge")


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
    sheet = _Sheet(
        facts, measured.value, {run.pci_address: run for run in node.probe.gpus} if node.probe else {}
    )
    states = {mark.address: mark.state for mark in gpus}
    columns = sorted(paths, key=lambda path: (sheet.numa(path.gpu), path.hops))
    rows = [tuple(sheet.shown(path.hops)) for path in columns]
    order = [path.gpu for path in columns]
    boxes, lines, height = _tree(sheet, order, rows, states)
    width = 2 * MARGIN + len(order) * COLUMN + (len(order) - 1) * GAP
    return Topology(
        width=width,
        height=height,
        boxes=tuple(boxes),
        lines=tuple(lines),
        summary=f"{len(order)} GPUs, " + "; ".join(sheet.summary()),
        legend=tuple(sheet.summary()),
        matrix=_matrix(sheet.peers) if sheet.peers else None,
        notes=()
        if sheet.peers or measured.state == "not_supported"
        else (f"GPUs together: {measured.detail}",),
    )


class _Sheet:
    """What is known, looked up by address."""

    def __init__(self, facts: NodeFacts, peers: Peers | None, runs: dict[str, GpuRun]) -> None:
        self.peers = peers
        self.runs = runs
        self._devices = {device.address: device for device in facts.pci.devices.value or ()}
        self._alone = {each.gpus[0]: each for each in self._rounds("alone")}
        self._all = next(self._rounds("all"), None)

    def device(self, address: str) -> PciDevice | None:
        return self._devices.get(address)

    def numa(self, address: str) -> int:
        """-1 where firmware or the kernel does not say."""
        device = self.device(address)
        node = device.numa_node.value if device else None
        return -1 if node is None else node

    def shown(self, hops: Sequence[str]) -> Iterator[str]:
        """Ports worth a box: root ports, and one for each switch."""
        for hop in hops[:-1]:
            device = self.device(hop)
            kind = device.port_type.value if device else None
            if kind == "root_port" or kind in _SWITCH_PORTS:
                yield hop

    def port(self, address: str) -> tuple[str, str]:
        """Kind of box, and its title."""
        device = self.device(address)
        root = device is not None and device.port_type.value == "root_port"
        return ("root", "root port") if root else ("switch", "PCIe switch")

    def link(self, address: str) -> str:
        """How a link is trained; "" where the table of hops has to say why that is not known."""
        device = self.device(address)
        if (
            device is None
            or device.link.sta_speed_gts.value is None
            or device.link.sta_width_lanes.value is None
        ):
            return ""
        return link(device.link.sta_speed_gts, device.link.sta_width_lanes)

    def lone(self, gpu: str) -> str:
        """GB/s of one GPU's copies by itself, to it and from it."""
        each = self._alone.get(gpu)
        return _both(each, (gpu,)) if each else ""

    def together(self, gpus: Sequence[str]) -> str:
        """GB/s of some GPUs added up while all copy."""
        return _both(self._all, gpus) if self._all else ""

    def shared(self, gpus: Sequence[str]) -> str:
        """GB/s of some GPUs added up while only they copy."""
        each = next((one for one in self._rounds("port") if set(one.gpus) == set(gpus)), None)
        return _both(each, gpus) if each else ""

    def summary(self) -> Iterator[str]:
        """What was measured over all GPUs, in words."""
        if self.peers is None:
            return
        rates = [pair.gbps.value for pair in self.peers.pairs if pair.gbps.value is not None]
        both = [
            pair.both_ways_gbps.value for pair in self.peers.pairs if pair.both_ways_gbps.value is not None
        ]
        if rates:
            yield f"copies between GPUs {_span(rates)} GB/s one way"
        if both:
            yield f"{_span(both)} GB/s both ways"
        sizes = self.peers.all_reduce.sizes.value
        if sizes:
            rate, transport = number(round(sizes[-1].bus_gbps, 1)), self.peers.all_reduce.transport
            yield f"all-reduce over {len(self.peers.gpus)} GPUs: {rate} GB/s of bus bandwidth ({transport})"
        else:
            yield f"all-reduce: {self.peers.all_reduce.sizes.detail}"

    def nvlinks(self, gpu: str) -> str:
        """How many NVLinks are up; "" on a part without."""
        around = next((one for one in self.peers.nvlinks if one.gpu == gpu), None) if self.peers else None
        state = around.after.value if around else None
        if state is None or not state.active.value:
            return ""
        return f"{state.active.value} of {state.links} links"

    def sent(self, gpu: str) -> str:
        """The median rate at which it sent to the others."""
        pairs = self.peers.pairs if self.peers else ()
        rates = [pair.gbps.value for pair in pairs if pair.source == gpu and pair.gbps.value is not None]
        return f"{number(round(median(rates)))} GB/s" if rates else ""

    def switched(self) -> bool:
        """Whether NVLinks lead everywhere, as through NVSwitches."""
        pairs = self.peers.pairs if self.peers else ()
        return bool(pairs) and all(pair.nvlinks.value for pair in pairs)

    def _rounds(self, kind: str) -> Iterator[CopyRound]:
        return (each for each in (self.peers.rounds if self.peers else ()) if each.kind == kind)


def _tree(
    sheet: _Sheet, order: Sequence[str], rows: Sequence[tuple[str, ...]], states: dict[str, GpuState]
) -> tuple[list[Box], list[Line], int]:
    """Boxes and lines from the top down, and the height."""
    depth = max(len(row) for row in rows)
    boxes: list[Box] = []
    lines: list[Line] = []
    for numa, columns in _runs([str(sheet.numa(gpu)) for gpu in order]):
        title = f"NUMA node {numa}" if numa != "-1" else "host"
        note = sheet.together([order[column] for column in columns])
        boxes.append(_box(columns, 0, "numa", title, f"all at once {note}" if note else ""))
    for level in range(depth):
        for port, columns in _runs([row[level] if level < len(row) else "" for row in rows]):
            members = [order[column] for column in columns]
            if not port:
                # No port at this depth: the line from above goes on down to the GPU.
                lines.extend(_line((column,), level, "pcie") for column in columns)
                lines.extend(_through(column, level) for column in columns)
                continue
            kind, title = sheet.port(port)
            shared = sheet.shared(members)
            note = f"together {shared}" if shared else short_address(port)
            if shared:
                title = f"{title} {short_address(port)}"
            boxes.append(_box(columns, level + 1, kind, title, note))
            labels = (sheet.link(port),) if kind == "switch" else ()
            lines.append(_line(columns, level, "pcie", labels))
    for column, gpu in enumerate(order):
        lines.append(_line((column,), depth, "pcie", (sheet.link(gpu), sheet.lone(gpu))))
        boxes.append(_gpu(sheet, column, depth + 1, gpu, states.get(gpu, "unknown")))
    height = _top(depth + 1) + BOX + MARGIN
    if any(sheet.nvlinks(gpu) for gpu in order):
        lines.extend(
            _line((column,), depth + 1, "nvlink", (sheet.nvlinks(gpu), sheet.sent(gpu)))
            for column, gpu in enumerate(order)
            if sheet.nvlinks(gpu)
        )
        title = "NVLink, each GPU to each" if sheet.switched() else "NVLink between some GPUs"
        boxes.append(_box(range(len(order)), depth + 2, "nvlink", title, "; ".join(sheet.summary())))
        height = _top(depth + 2) + BOX + MARGIN
    return boxes, lines, height


def _gpu(sheet: _Sheet, column: int, level: int, gpu: str, state: GpuState) -> Box:
    run = sheet.runs.get(gpu)
    figures = []
    if run is not None and run.achieved_tflops.value is not None:
        figures.append(f"{number(round(run.achieved_tflops.value))} TFLOP/s")
    if run is not None and run.telemetry.power_w.value is not None:
        figures.append(f"{number(round(run.telemetry.power_w.value.mean))} W")
    return _box((column,), level, "gpu", f"GPU {short_address(gpu)}", ", ".join(figures), state=state)


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
    """From a box of a level down to the next one."""
    middle = (_left(columns[0]) + _left(columns[-1]) + COLUMN) // 2
    top = _top(level) + BOX
    return Line(
        x=middle, top=top, bottom=top + EDGE, kind=kind, labels=tuple(text for text in labels if text)
    )


def _through(column: int, level: int) -> Line:
    """Past a level that has no box in this column."""
    top = _top(level + 1)
    return Line(x=_left(column) + COLUMN // 2, top=top, bottom=top + BOX, kind="pcie")


def _both(each: CopyRound, gpus: Sequence[str]) -> str:
    """GB/s to and from some GPUs of a round, added up; "" when one is missing."""
    places = [place for place, gpu in enumerate(each.gpus) if gpu in gpus]
    sums = []
    for rates in (each.h2d, each.d2h):
        known = [rates[place].value for place in places]
        if None in known or len(known) != len(gpus):
            return ""
        sums.append(number(round(sum(value for value in known if value is not None), 1)))
    return f"{sums[0]} / {sums[1]} GB/s"


def _span(values: Sequence[float]) -> str:
    low, high = number(round(min(values))), number(round(max(values)))
    return low if low == high else f"{low} to {high}"


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
