"""What BMC and CPUs say of power, heat and buses when no GPU was lost over it."""

from __future__ import annotations

from collections.abc import Iterator

from nodeprep.diagnose import catalog
from nodeprep.diagnose.catalog import EventLogKind
from nodeprep.diagnose.event import Event
from nodeprep.diagnose.evidence import Evidence
from nodeprep.diagnose.rule import Finding, Rule
from nodeprep.diagnose.rules._words import listed, times, total

_MOST_PLACES = 4


def explain(evidence: Evidence) -> Iterator[Finding]:
    """One finding a host, kind of entry and device."""
    for host in evidence.hosts:
        for kind in catalog.event_log_kinds().values():
            for _, device, events in evidence.by_device(evidence.open(kind.id, host=host)):
                yield _finding(kind, device, events)


def _finding(kind: EventLogKind, device: str, events: list[Event]) -> Finding:
    named = [str(event.data["place"]) for event in events if event.data.get("place")]
    places = [device] if device else list(dict.fromkeys(named))[:_MOST_PLACES]
    return Finding(
        layer=kind.layer,
        severity=kind.severity,
        device=device,
        summary=f"{kind.summary}{f' ({listed(places)})' if places else ''}",
        why=f"Logged {times(total(events))}; no GPU was lost with it in this log.",
        events=tuple(events),
        action=kind.action,
        then=kind.then,
        count=total(events),
    )


RULE = Rule(id="bmc_events", rank=69, explain=explain)
