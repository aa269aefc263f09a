"""The recovery action that the driver asked for last."""

from __future__ import annotations

from nodeprep.diagnose import catalog
from nodeprep.diagnose.catalog import RecoveryEntry
from nodeprep.diagnose.device import same_slot
from nodeprep.diagnose.event import Event
from nodeprep.diagnose.evidence import Evidence


def asked(
    evidence: Evidence, host: str, device: str, after: Event
) -> tuple[list[Event], RecoveryEntry | None]:
    """Recovery events (Xid 154) of a GPU from a fault on, and the state that the last of them leaves.

    The last one is the state, not the worst: an action of 0 means that the GPU has recovered.
    """
    # Notes made by hand leave the address out.
    alone = len(evidence.gpus(host)) == 1
    events = [
        event
        for event in evidence.open("xid.154", host=host)
        if (event.device == device or same_slot(event.device, device) or (alone and not event.device))
        and "new_action" in event.data
        and not _before(evidence, event, after)
    ]
    return events, catalog.recovery(int(events[-1].data["new_action"])) if events else None


def _before(evidence: Evidence, event: Event, after: Event) -> bool:
    # The driver may say what it needs an instant before it prints the fault.
    apart = evidence.clock.seconds(after, event)
    return apart is not None and apart < -2.0
