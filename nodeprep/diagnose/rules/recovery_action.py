"""A recovery action that is due, with no fault on record that asks for it."""

from __future__ import annotations

from collections.abc import Iterator

from nodeprep.diagnose import catalog
from nodeprep.diagnose.evidence import Evidence
from nodeprep.diagnose.rule import Finding, Rule
from nodeprep.diagnose.rules._words import of


def explain(evidence: Evidence) -> Iterator[Finding]:
    """One finding a GPU: the last action is the state."""
    for _, device, events in evidence.by_device(evidence.open("xid.154")):
        told = [event for event in events if "new_action" in event.data]
        if not told:
            entry = catalog.xid(154)
            yield Finding(
                layer="driver",
                severity="warning",
                device=device,
                summary=f"Xid 154 on {of(device)} without a readable action",
                why="The line names no numbers, and its words differ between drivers.",
                events=tuple(events),
                action="observe",
                then=entry.then,
            )
            continue
        last = told[-1]
        action = catalog.recovery(int(last.data["new_action"]))
        yield Finding(
            layer="driver",
            severity=action.severity,
            device=device,
            summary=f"{of(device)}: {action.meaning} (recovery action {action.code:#x})",
            why=(
                "Xid 154 is no fault of its own: it says what the GPU needs. The number "
                f"{action.code:#x} counts, whatever "
                "the words beside it. The fault before it is not in this log."
                if action.code
                else "The driver took its demand back: the GPU has recovered."
            ),
            events=tuple(events),
            action=action.action,
            then=(*action.then, "read_kernel_log") if action.code else (),
        )


RULE = Rule(id="recovery_action", rank=82, explain=explain)
