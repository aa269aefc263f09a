"""Xids that no other rule has a story for: what the catalogue says, the gravest of a moment first."""

from __future__ import annotations

from collections.abc import Iterator

from nodeprep.diagnose import catalog
from nodeprep.diagnose.catalog import XidEntry
from nodeprep.diagnose.event import Event
from nodeprep.diagnose.evidence import Evidence
from nodeprep.diagnose.rule import Finding, Rule
from nodeprep.diagnose.rules._recovery import asked
from nodeprep.diagnose.rules._symptoms import follows, symptoms
from nodeprep.diagnose.rules._words import listed, of, times, total

# What follows from a fault of an engine or of firmware comes while the driver waits for it.
_TOGETHER_S = 120.0
# Without times, what stands together came together.
_NEXT_LINES = 20
_SEVERITIES = ("info", "warning", "error", "critical")


def explain(evidence: Evidence) -> Iterator[Finding]:
    """One finding a GPU and moment; counters of agents, which know no moment, one a code."""
    for host, device, events in evidence.by_device(evidence.open("xid.")):
        left = [
            event
            for event in events
            if catalog.xid(event.data["code"]).role not in ("consequence", "recovery")
        ]
        while left:
            root = max(left, key=lambda event: (_grave(event), -evidence.position(event)))
            same = [event for event in left if event is root or _belongs(evidence, root, event)]
            left = [event for event in left if event not in same]
            yield _finding(evidence, host, device, root, same)
    for host in evidence.hosts:
        for event in evidence.open("agent.xid_count", host=host):
            entry = catalog.xid(event.data["code"])
            if entry.role != "consequence":
                yield _counted(host, event, entry)


def _grave(event: Event) -> int:
    return _SEVERITIES.index(catalog.xid(event.data["code"]).severity)


def _belongs(evidence: Evidence, root: Event, event: Event) -> bool:
    if event.kind == root.kind:
        return True
    apart = evidence.clock.seconds(root, event)
    if apart is None:
        one, other = root.lines[0], event.lines[0]
        return one.source == other.source and abs(one.number - other.number) <= _NEXT_LINES
    return abs(apart) <= _TOGETHER_S


def _finding(evidence: Evidence, host: str, device: str, root: Event, events: list[Event]) -> Finding:
    entry = catalog.xid(root.data["code"])
    recovery, asks = asked(evidence, host, device, events[0])
    after = [
        event
        for event in evidence.open("xid.43", "xid.45", "gpu.reset_required", host=host, device=device)
        if follows(evidence, events[0], event, _TOGETHER_S)
    ]
    if entry.severity in ("error", "critical"):
        after += symptoms(evidence, host, events[0], (entry.code,))
    needs = asks is not None and asks.code != 0
    severity = entry.severity
    if needs and asks and _SEVERITIES.index(asks.severity) > _SEVERITIES.index(severity):
        severity = asks.severity
    same = [event for event in events if event.kind == root.kind]
    return Finding(
        layer=entry.layer,
        severity=severity,
        device=device,
        summary=f"Xid {entry.code} on {of(device)}: {entry.meaning}",
        why=_why(entry, root, events, asks.meaning if needs and asks else ""),
        events=tuple({id(e): e for e in (*events, *recovery, *after)}.values()),
        action=asks.action if needs and asks else entry.action,
        then=(*asks.then, *entry.then) if needs and asks else entry.then,
        root_event=root.kind,
        count=total(same),
    )


def _why(entry: XidEntry, root: Event, events: list[Event], asks: str) -> str:
    same = [event for event in events if event.kind == root.kind]
    parts = [f"Printed {times(total(same))}."]
    if entry.role == "unknown":
        parts.append(
            f"No published list gives Xid {entry.code} a meaning, so none is given here. The "
            "driver's own words: "
            f"{root.data.get('text') or 'none'}."
        )
    others = sorted({event.data["code"] for event in events} - {entry.code})
    if others:
        parts.append(f"Xid {listed(others)} of the same moment weigh less.")
    if entry.advice:
        parts.append(entry.advice)
    if asks:
        parts.append(f"The driver's last word on recovery: {asks}.")
    return " ".join(parts)


def _counted(host: str, event: Event, entry: XidEntry) -> Finding:
    where = f" on {host}" if host else ""
    return Finding(
        layer=entry.layer,
        severity=entry.severity,
        summary=f"a counter says Xid {entry.code} {times(event.count)}{where}: {entry.meaning}",
        why="A counter names neither the GPU nor the moment; the kernel log does.",
        events=(event,),
        xids=(entry.code,),
        action=entry.action,
        then=("read_kernel_log", *entry.then),
        count=event.count,
    )


RULE = Rule(id="other_xid", rank=80, explain=explain)
