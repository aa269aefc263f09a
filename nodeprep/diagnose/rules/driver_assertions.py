"""Checks inside the driver that failed, which weigh nothing by themselves."""

from __future__ import annotations

from collections.abc import Iterator

from nodeprep.diagnose.evidence import Evidence
from nodeprep.diagnose.rule import Finding, Rule
from nodeprep.diagnose.rules._words import times, total


def explain(evidence: Evidence) -> Iterator[Finding]:
    """One finding a host, for information; beside an Xid or a lost GPU they are no news."""
    for host in evidence.hosts:
        events = evidence.open("driver.assertion", host=host)
        if events and not evidence.seen("xid.", "gpu.fallen_off_bus", "gpu.lost_status", "gsp.", host=host):
            yield Finding(
                layer="driver",
                severity="info",
                summary="checks inside the driver failed",
                why=(
                    f"Told {times(total(events))}. The driver goes on after such a check, and many versions "
                    "print some at each start; a fault that matters has an Xid or another message of its own."
                ),
                events=tuple(events),
                action="observe",
                then=("update_driver_if_it_returns",),
                count=total(events),
            )


RULE = Rule(id="driver_assertions", rank=90, explain=explain)
