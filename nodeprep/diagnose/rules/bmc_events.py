"""What BMC and CPUs say of power, heat and buses when no GPU was lost over it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from nodeprep.diagnose import catalog
from nodeprep.diagnose.catalog import EventLogKind
from nodeprep.diagnose.event import Event
from nodeprep.diagnose.evidence import Evidence
from nodeprep.diagnose.rule import Finding, Rule
from nodeprep.diagnose.rules._words import listed, times, total
from nodeprep.model.diagnosis import Severity

_MOST_PLACES = 4
# What is over stays worth telling. A fatal error of a bus or a thermal trip is not undone by its end.
_WHEN_OVER: Mapping[Severity, Severity] = {"error": "warning", "warning": "info"}


def explain(evidence: Evidence) -> Iterator[Finding]:
    """One finding a host, kind of entry and device."""
    for host in evidence.hosts:
        for kind in catalog.event_log_kinds().values():
            for _, device, events in evidence.by_device(evidence.open(kind.id, host=host)):
                yield _finding(kind, device, events, _ends(evidence, host, events))


def _ends(evidence: Evidence, host: str, events: list[Event]) -> list[Event]:
    """The entries that say that all of it is over; none while anything is not."""
    found = evidence.seen("sel.ended", host=host)
    ends = []
    for event in events:
        same = [
            end
            for end in found
            if end.data["ended"] in (event.kind, "")
            and end.data["sensor"] == event.data.get("sensor")
            # A fan that is no longer beyond recovery may still be below its critical limit.
            and end.data["event"] in (event.data.get("event"), "")
            and evidence.position(end) > evidence.position(event)
        ]
        if not same:
            return []
        ends.append(same[0])
    return list({id(end): end for end in ends}.values())


def _finding(kind: EventLogKind, device: str, events: list[Event], ends: list[Event]) -> Finding:
    named = [str(event.data["place"]) for event in events if event.data.get("place")]
    places = [device] if device else list(dict.fromkeys(named))[:_MOST_PLACES]
    over = bool(ends) and kind.severity in _WHEN_OVER
    return Finding(
        layer=kind.layer,
        severity=_WHEN_OVER[kind.severity] if over else kind.severity,
        device=device,
        summary=kind.summary
        + (f" ({listed(places)})" if places else "")
        + (", and it is over" if over else ""),
        why=f"Logged {times(total(events))}; no GPU was lost with it in this log."
        + (" Later entries of the same sensor end it." if over else ""),
        events=(*events, *ends),
        action="observe" if over else kind.action,
        then=kind.then,
        root_event=kind.id,
        count=total(events),
    )


RULE = Rule(id="bmc_events", rank=69, explain=explain)
