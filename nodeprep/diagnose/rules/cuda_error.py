"""CUDA errors of programs without any kernel log that says more."""

from __future__ import annotations

from collections.abc import Iterator

from nodeprep.diagnose import catalog
from nodeprep.diagnose.event import Event
from nodeprep.diagnose.evidence import Evidence
from nodeprep.diagnose.rule import Finding, Rule
from nodeprep.diagnose.rules._symptoms import after_network, follows
from nodeprep.diagnose.rules._words import listed, times, total

_SEVERITIES = ("info", "warning", "error", "critical")


def explain(evidence: Evidence) -> Iterator[Finding]:
    """One finding a host: the gravest error, since the ones after it are its consequences."""
    for host in evidence.hosts:
        events = evidence.open("cuda.", host=host)
        network = evidence.open("nccl.network", host=host)
        events = [
            event
            for event in events
            if event.kind != "cuda.out_of_memory" and not after_network(evidence, event, network)
        ]
        while events:
            root = max(events, key=lambda event: (_grave(event), -evidence.position(event)))
            same = [event for event in events if event.kind == root.kind or _grave(event) <= _grave(root)]
            events = [event for event in events if event not in same]
            yield _finding(evidence, host, root, same)


def _grave(event: Event) -> int:
    entry = catalog.cuda(int(event.data["code"]))
    return _SEVERITIES.index(entry.severity) if entry else 0


def _finding(evidence: Evidence, host: str, root: Event, events: list[Event]) -> Finding:
    entry = catalog.cuda(int(root.data["code"]))
    if entry is None:
        raise ValueError(f"an event of a CUDA error that the catalogue does not have: {root.kind}")
    kernel = "Xid " + listed(entry.xids) if entry.xids else ""
    beside = (
        f" The kernel log of that time should show one of {kernel}; it is not here, or silent."
        if kernel
        else " It goes with no Xid."
    )
    slept = [
        event
        for event in evidence.seen("host.suspended", host=host)
        if root.kind == "cuda.unknown" and follows(evidence, event, root, float("inf"))
    ]
    if slept:
        beside = " The machine slept before; nvidia_uvm often does not survive that while programs hold it."
    return Finding(
        layer=entry.layer,
        severity=entry.severity,
        summary=f"CUDA error {entry.code} ({entry.text}): {entry.meaning}",
        why=f"Told {times(total(events))} by programs.{beside}",
        events=(*slept[-1:], *events, *_besides(evidence, host, root)),
        action=entry.action,
        then=("reload_uvm_module", *entry.then) if slept else entry.then,
        root_event=root.kind,
        xids=(),
        count=total([event for event in events if event.kind == root.kind]),
    )


def _besides(evidence: Evidence, host: str, root: Event) -> list[Event]:
    """What collectives and diagnostics said; a network that failed before is a story of its own."""
    told = [
        event
        for event in evidence.open("nccl.", host=host)
        if event.kind != "nccl.network" or follows(evidence, root, event)
    ]
    if root.kind == "cuda.devices_unavailable":
        # A diagnostic that gets no GPU says nothing about the GPU.
        told += [
            event
            for event in evidence.open("agent.diag_failed", host=host)
            if event.lines[0].source == root.lines[0].source
        ]
    return told


RULE = Rule(id="cuda_error", rank=74, explain=explain)
