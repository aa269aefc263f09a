"""The view model of the HTML page: everything the template shows, already in words."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from nodeprep import registry
from nodeprep.model.certificate import Certificate
from nodeprep.model.plan import Change
from nodeprep.model.run import NodeView, Run, RunView
from nodeprep.reports import _charts, _checks, _evidence, _gpus, _phases, _probe, _topology
from nodeprep.reports._text import between, gib, moment, number, short_address

Standing = Literal[
    "certified", "rejected", "inconclusive", "unreachable", "missing", "failed", "unknown", "running", "none"
]

STANDINGS: tuple[Standing, ...] = (
    "rejected",
    "failed",
    "unreachable",
    "missing",
    "unknown",
    "running",
    "inconclusive",
    "none",
    "certified",
)
"""Worst first."""

MANY_NODES = 24
"""Above this, cells get smaller and what needs attention comes first in the matrix."""

_ALWAYS_COUNTED: tuple[Standing, ...] = ("certified", "rejected", "inconclusive")

_WORDS: Mapping[str, str] = {"none": "no verdict"}

_GPU_KEY = re.compile(r"^gpu\.([0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])\.(.+)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pivot:
    """Configuration keys that each GPU has, as a table: keys down, GPUs across.

    A row holds one value for all GPUs when they agree, so that the odd one out is what catches the eye.
    """

    gpus: tuple[str, ...]
    rows: tuple[tuple[str, tuple[str, ...]], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """Why a node stands as it does; `checks` are those that all say the same."""

    text: str
    checks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePage:
    """One node: its cell in the grid and its section."""

    index: int
    anchor: str
    host: str
    standing: Standing
    word: str
    reasons: tuple[Reason, ...]
    headline: str
    """The first reason, for the grid."""
    simulated: bool
    opened: bool
    facts: tuple[tuple[str, str], ...]
    identity: tuple[tuple[str, str], ...]
    gpus: tuple[_gpus.GpuMark, ...]
    configuration: tuple[tuple[str, str], ...]
    gpu_configuration: Pivot | None
    checks: tuple[_checks.Row, ...]
    counts: Mapping[_checks.Kind, int]
    probe: _probe.ProbeTable | None
    probe_phases: _phases.PhaseTable | None
    charts: _charts.NodeCharts | None
    topology: _topology.Topology | None
    hops: _evidence.Hops | None
    events: _evidence.Events | None
    changes: tuple[Change, ...]
    phases: tuple[tuple[str, str], ...]
    error: str
    hint: str
    signature: tuple[tuple[str, str], ...]
    digests: tuple[tuple[str, str], ...]
    files: tuple[_evidence.FileLink, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """The whole page."""

    run: Run
    facts: tuple[tuple[str, str], ...]
    simulated: str
    """The banner's sentence; "" when all hardware was real."""
    counts: tuple[tuple[Standing, str, int], ...]
    nodes: tuple[NodePage, ...]
    columns: tuple[NodePage, ...]
    """The nodes in the order of the matrix: as they stand in the rack, or worst first when there are many."""
    matrix: tuple[_checks.MatrixRow, ...]
    many: bool
    probe_headings: tuple[tuple[str, str], ...]
    phase_headings: tuple[tuple[str, str], ...]
    chart_data: Mapping[str, Any]


def build(view: RunView) -> Page:
    """The page of a run. Every requested host is on it, whatever became of it."""
    titles = {id_: check.title for id_, check in registry.discover("nodeprep.checks", "CHECK").items()}
    points = _charts.points_per_series(view.nodes)
    anchors: set[str] = set()
    nodes = tuple(
        _node(
            view.run,
            node,
            index=index,
            anchor=_anchor(node.record.host, index, anchors),
            titles=titles,
            points=points,
        )
        for index, node in enumerate(view.nodes)
    )
    columns = nodes
    if len(nodes) > MANY_NODES:
        columns = tuple(sorted(nodes, key=lambda node: STANDINGS.index(node.standing)))
    return Page(
        run=view.run,
        facts=_run_facts(view),
        simulated=_banner(view),
        counts=_counts(nodes),
        nodes=nodes,
        columns=columns,
        many=len(nodes) > MANY_NODES,
        matrix=_checks.matrix([view.nodes[node.index] for node in columns], titles),
        probe_headings=_probe.HEADINGS,
        phase_headings=_phases.HEADINGS,
        chart_data={str(node.index): node.charts.data for node in nodes if node.charts},
    )


def is_simulated(node: NodeView) -> bool:
    """Whether any document of the node says it was not the real machine."""
    documents = (
        node.facts_before,
        node.facts_after,
        node.plan,
        node.probe,
        node.certificate,
        *node.telemetry,
    )
    return any(document is not None and document.simulated for document in documents)


def standing(run: Run, node: NodeView) -> tuple[Standing, tuple[str, ...]]:
    """The verdict, or what stands in its place, and why. There is always a reason."""
    if node.certificate is not None:
        return node.certificate.verdict, _verdict_reasons(node.certificate)
    record = node.record
    if record.state == "done":
        return "none", (f"the command {run.verb!r} ended without a certificate for this node",)
    defaults = {
        "unreachable": "the node did not answer",
        "missing": "nothing was reported about this node",
        "failed": "a step failed without saying why",
        "unknown": "the run ended before anything was known about this node",
        "running": "the run had not finished with this node when this page was written",
    }
    failed = [name for name, state in record.phases.items() if state not in ("done", "unknown", "running")]
    reason = record.error or defaults[record.state]
    return record.state, (f"{failed[-1]}: {reason}" if failed else reason,)


def grouped(reasons: Sequence[str], certificate: Certificate | None) -> tuple[Reason, ...]:
    """Reasons as given, but for those in which several checks say the very same: they become one.

    A driver that hangs is the reason of twenty checks, and one thing to repair.
    """
    ids = {result.id for result in certificate.checks} if certificate else set()
    same: dict[str, list[tuple[str, str]]] = {}
    for reason in reasons:
        head, colon, text = reason.partition(": ")
        known = colon and head in ids
        same.setdefault(text if known else reason, []).append((head if known else "", reason))
    return tuple(
        Reason(text=text, checks=tuple(head for head, _ in told if head))
        if len(told) > 1
        else Reason(text=told[0][1])
        for text, told in same.items()
    )


def _verdict_reasons(certificate: Certificate) -> tuple[str, ...]:
    if certificate.reasons:
        return certificate.reasons
    counts = _checks.counts(certificate.checks)
    if certificate.verdict == "certified":
        words = {"pass": "passed", "waived": "waived", "skipped": "skipped"}
        return (", ".join(f"{counts[kind]} {word}" for kind, word in words.items() if kind in counts),)
    told = ", ".join(f"{count} {_checks.WORDS[kind]}" for kind, count in counts.items())
    return (f"the certificate gives no reason; its checks: {told or 'none'}",)


def _node(
    run: Run, node: NodeView, *, index: int, anchor: str, titles: Mapping[str, str], points: int
) -> NodePage:
    stands, told = standing(run, node)
    reasons = grouped(told, node.certificate)
    gpus = _gpus.marks(node)
    certificate = node.certificate
    results = certificate.checks if certificate else ()
    configuration, pivot = _configuration(certificate)
    return NodePage(
        index=index,
        anchor=anchor,
        host=node.record.host,
        standing=stands,
        word=_WORDS.get(stands, stands),
        reasons=reasons,
        headline=reasons[0].text + (f" ({len(reasons[0].checks)} checks)" if reasons[0].checks else ""),
        simulated=is_simulated(node),
        opened=len(run.hosts) == 1 or stands != "certified",
        facts=_node_facts(node),
        identity=_identity(node),
        gpus=gpus,
        configuration=configuration,
        gpu_configuration=pivot,
        checks=_checks.rows(results, titles),
        counts=_checks.counts(results),
        probe=_probe.table(node.probe, gpus) if node.probe else None,
        probe_phases=_phases.table(node.probe, node.telemetry) if node.probe else None,
        charts=_charts.node_charts(node, gpus, points),
        topology=_topology.draw(node, gpus),
        hops=_evidence.hops(node),
        events=_evidence.events(node),
        changes=_evidence.changes(node.plan),
        phases=tuple(node.record.phases.items()),
        error=node.record.error,
        hint=node.record.hint,
        signature=_signature(node),
        digests=tuple(sorted(certificate.digests.items())) if certificate else (),
        files=_evidence.files(node, verb=run.verb),
    )


def _anchor(host: str, index: int, taken: set[str]) -> str:
    anchor = "node-" + re.sub(r"[^A-Za-z0-9._-]", "-", host)
    if anchor in taken:
        anchor = f"{anchor}-{index}"
    taken.add(anchor)
    return anchor


def _banner(view: RunView) -> str:
    hosts = [node.record.host for node in view.nodes if is_simulated(node)]
    if view.run.simulated or (hosts and len(hosts) == len(view.nodes)):
        return "no real hardware was tested"
    return f"no real hardware was tested on {', '.join(hosts)}" if hosts else ""


def _counts(nodes: tuple[NodePage, ...]) -> tuple[tuple[Standing, str, int], ...]:
    order = (*_ALWAYS_COUNTED, *(stands for stands in STANDINGS if stands not in _ALWAYS_COUNTED))
    counted = [(stands, sum(node.standing == stands for node in nodes)) for stands in order]
    return tuple(
        (stands, _WORDS.get(stands, stands), count)
        for stands, count in counted
        if count or stands in _ALWAYS_COUNTED
    )


def _run_facts(view: RunView) -> tuple[tuple[str, str], ...]:
    run = view.run
    profiles = sorted({node.certificate.profile for node in view.nodes if node.certificate})
    known = (
        ("started", moment(run.started_at)),
        ("ended", moment(run.ended_at) or "not yet when this page was written"),
        ("took", between(run.started_at, run.ended_at)),
        ("level", run.level),
        ("workload", run.workload),
        ("profile", ", ".join(profiles)),
        ("nodes", str(len(view.nodes))),
        ("nodeprep", run.nodeprep_version),
    )
    return tuple((name, value) for name, value in known if value)


def _node_facts(node: NodeView) -> tuple[tuple[str, str], ...]:
    certificate = node.certificate
    if certificate is None:
        return ()
    return (
        ("level", certificate.level),
        ("workload", certificate.workload),
        ("profile", certificate.profile),
        ("issued", moment(certificate.issued)),
        ("expires", moment(certificate.expires)),
    )


def _identity(node: NodeView) -> tuple[tuple[str, str], ...]:
    if node.certificate is not None:
        who = node.certificate.identity
        return (
            ("product", who.product),
            ("product serial", who.product_serial),
            ("product UUID", who.product_uuid),
            ("board", who.board),
            ("board serial", who.board_serial),
            ("BIOS", who.bios_version),
            ("BMC", who.bmc),
            ("CPU", who.cpu_model),
            ("logical CPUs", number(who.cpu_count) or "unreadable"),
            ("memory", gib(who.memory_bytes) or "unreadable"),
        )
    facts = node.facts_after or node.facts_before
    if facts is None:
        return ()
    return (
        ("product", f"{facts.dmi.sys_vendor} {facts.dmi.product_name}"),
        ("product serial", str(facts.dmi.product_serial)),
        ("BIOS", str(facts.dmi.bios_version)),
        ("CPU", str(facts.cpu.model)),
        ("logical CPUs", str(facts.cpu.online)),
    )


def _configuration(certificate: Certificate | None) -> tuple[tuple[tuple[str, str], ...], Pivot | None]:
    """Node-wide keys as a list, keys of GPUs as a table."""
    plain: list[tuple[str, str]] = []
    gpus: dict[str, dict[str, str]] = {}
    for key, value in sorted(certificate.configuration.values.items()) if certificate else ():
        match = _GPU_KEY.match(key)
        if match:
            gpus.setdefault(match[1], {})[match[2]] = value
        else:
            plain.append((key, value))
    if not gpus:
        return tuple(plain), None
    keys = sorted({key for values in gpus.values() for key in values})
    rows = tuple((key, _agreed([values.get(key, "") for values in gpus.values()])) for key in keys)
    return tuple(plain), Pivot(gpus=tuple(map(short_address, gpus)), rows=rows)


def _agreed(values: Sequence[str]) -> tuple[str, ...]:
    return (values[0],) if len(set(values)) == 1 else tuple(values)


def _signature(node: NodeView) -> tuple[tuple[str, str], ...]:
    if node.certificate is None:
        return ()
    return (
        ("key id", node.key_id or "not signed"),
        ("run", node.certificate.run),
        ("nodeprep", node.certificate.nodeprep_version),
    )
