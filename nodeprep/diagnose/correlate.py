"""From events to incidents: rules look one after the other, causes first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from nodeprep.diagnose.event import Event
from nodeprep.diagnose.evidence import Evidence
from nodeprep.diagnose.folding import folded
from nodeprep.diagnose.line import Line
from nodeprep.diagnose.rule import Finding
from nodeprep.diagnose.rules import all_rules
from nodeprep.model.diagnosis import DiagnosisInput, EvidenceLine, Incident, RootCause

_SEVERITIES = ("critical", "error", "warning", "info")
# Enough for any story; a flood is told by its count.
_MAX_QUOTED = 40
_MAX_QUOTE_CHARS = 1000


def incidents(events: Iterable[Event], inputs: Sequence[DiagnosisInput] = ()) -> tuple[Incident, ...]:
    """Incidents, the worst first.

    Args:
        events: Of all inputs, in any order. Floods are folded.
        inputs: What was read, and what is missing from it.
    """
    evidence = Evidence(folded(events), inputs)
    findings: list[Finding] = []
    for rule in all_rules():
        for finding in rule.explain(evidence):
            evidence.explain(finding.events)
            findings.append(finding)
    findings = [finding for finding in findings if not _is_echo(finding, findings, evidence)]
    findings.sort(
        key=lambda finding: (
            _SEVERITIES.index(finding.severity),
            min(map(evidence.position, finding.events)),
        )
    )
    return tuple(_incident(f"i{number}", finding, evidence) for number, finding in enumerate(findings, 1))


def _is_echo(finding: Finding, findings: Sequence[Finding], evidence: Evidence) -> bool:
    if not finding.yields_to:
        return False
    hosts = {evidence.host(event) for event in finding.events}
    known = {id(event) for host in hosts for event in evidence.seen(*finding.yields_to, host=host)}
    most = _SEVERITIES.index(finding.severity)
    return any(
        other is not finding
        and _SEVERITIES.index(other.severity) <= most
        and any(id(event) in known for event in other.events)
        for other in findings
    )


def _incident(name: str, finding: Finding, evidence: Evidence) -> Incident:
    events = sorted(finding.events, key=evidence.position)
    root_event = finding.root_event or events[0].kind
    xids = finding.xids if finding.xids is not None else _xids(events)
    hosts = {evidence.host(event) for event in events}
    times = [line.time.isoformat() for event in events for line in event.lines if line.time]
    count = finding.count or sum(event.count for event in events if event.kind == root_event) or 1
    return Incident(
        id=name,
        layer=finding.layer,
        severity=finding.severity,
        device=finding.device,
        summary=finding.summary,
        why=finding.why,
        xids=xids,
        action=finding.action,
        actions=tuple(dict.fromkeys((finding.action, *finding.then))),
        root=RootCause(device=finding.root_device or finding.device, event=root_event),
        count=count,
        first=min(times, default=""),
        last=max(times, default=""),
        evidence=tuple(_quotes(events)),
        host=hosts.pop() if len(hosts) == 1 else "",
    )


def _xids(events: Iterable[Event]) -> tuple[int, ...]:
    return tuple(sorted({int(event.data["code"]) for event in events if event.kind.startswith("xid.")}))


def _quotes(events: list[Event]) -> Iterator[EvidenceLine]:
    """The lines, in order; of too many the first and last, and one of each kind between them."""
    lines = [(event, line) for event in events for line in event.lines]
    if len(lines) > _MAX_QUOTED:
        half = _MAX_QUOTED // 2
        kinds: set[str] = {event.kind for event, _ in (*lines[:half], *lines[-half:])}
        middle = []
        for event, line in lines[half:-half]:
            if event.kind not in kinds:
                kinds.add(event.kind)
                middle.append((event, line))
        lines = [*lines[:half], *middle, *lines[-half:]]
    seen: set[tuple[str, int]] = set()
    for event, line in lines:
        if (line.source, line.number) not in seen:
            seen.add((line.source, line.number))
            yield _quote(event, line)


def _quote(event: Event, line: Line) -> EvidenceLine:
    raw = line.raw
    return EvidenceLine(
        source=line.source,
        line=line.number,
        event=event.kind,
        text=raw if len(raw) <= _MAX_QUOTE_CHARS else f"{raw[:_MAX_QUOTE_CHARS]}...",
        time=line.time.isoformat() if line.time else "",
    )
