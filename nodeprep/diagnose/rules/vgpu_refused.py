"""The vGPU manager of a host could not give a virtual machine its share of a GPU."""

from __future__ import annotations

from collections.abc import Iterator

from nodeprep.diagnose.evidence import Evidence
from nodeprep.diagnose.rule import Finding, Rule
from nodeprep.diagnose.rules._words import times, total


def explain(evidence: Evidence) -> Iterator[Finding]:
    """One finding a host."""
    for host in evidence.hosts:
        events = evidence.open("vgpu.error", host=host)
        if events:
            yield Finding(
                layer="config",
                severity="error",
                summary="the vGPU manager reports errors; a virtual machine may be without its GPU",
                why=(
                    f"Told {times(total(events))}, first in these words: {events[0].data['what']}. GPU, type "
                    "of the vGPU, driver of the host and licence must fit each other; the card is fine."
                ),
                events=tuple(events),
                action="fix_config",
                then=("update_driver_if_it_returns", "report_to_vendor"),
                count=total(events),
            )


RULE = Rule(id="vgpu_refused", rank=84, explain=explain)
