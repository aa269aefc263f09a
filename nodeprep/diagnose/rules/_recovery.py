"""The recovery action that the driver asked for last."""

from __future__ import annotations

from nodeprep.diagnose import catalog
from nodeprep.diagnose.catalog import RecoveryEntry
from nodeprep.diagnose.event import Event
from nodeprep.diagnose.evidence import Evidence


def asked(
    evidence: Evidence, host: str, device: str, after: Event
) -> tuple[list[Event], RecoveryEntry | None]:
    """Recovery events (Xid 154) of a GPU from a fault on, and the state that the last of them leaves.

    The last one is the state, not the worst: an action of 0 means that the GPU has recovered.
    """
    events = [
        event
        for event in evidence.open("xid.154", host=host, device=device)
        if "new_action" in event.data and not _before(evidence, event, after)
    ]
    return events, catalog.recovery(int(events[-1].data["new_action"])) if events else None


def _before(evidence: Evidence, event: Event, after: Event) -> bool:
    # The driver may say what it needs an instant before it prints the fault.
    apart = evidence.clock.seconds(after, event)
    return apart is not None and apart < -2.0
