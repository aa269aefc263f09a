"""NVSwitch messages that no link failure goes with: notices, heat, routing tables."""

from __future__ import annotations

from collections.abc import Iterator

from nodeprep.diagnose import catalog
from nodeprep.diagnose.evidence import Evidence
from nodeprep.diagnose.rule import Finding, Rule
from nodeprep.diagnose.rules._words import times, total


def explain(evidence: Evidence) -> Iterator[Finding]:
    """One finding a switch and code."""
    for _, device, events in evidence.by_device(evidence.open("sxid.")):
        for kind in dict.fromkeys(event.kind for event in events):
            same = [event for event in events if event.kind == kind]
            code = int(same[0].data["code"])
            entry = catalog.sxid(code)
            said = "fatal" if same[0].data.get("said_fatal") else "not fatal"
            meaning = entry.meaning if entry else str(same[0].data["text"])
            yield Finding(
                layer=entry.layer if entry else "hardware",
                severity=entry.severity if entry else "warning",
                device=device,
                summary=f"NVSwitch {device}: SXid {code}: {meaning}",
                why=f"Printed {times(total(same))}; the driver calls it {said}. No GPU lost a link "
                "over it in this log.",
                events=tuple(same),
                action=entry.action if entry else "observe",
                then=entry.then if entry else ("check_fabric_state_completed", "report_to_vendor"),
            )


RULE = Rule(id="nvswitch", rank=28, explain=explain)
