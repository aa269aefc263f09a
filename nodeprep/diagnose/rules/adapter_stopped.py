"""A network adapter's firmware stopped; collectives over it fail, and no GPU is to blame."""

from __future__ import annotations

from collections.abc import Iterator

from nodeprep.diagnose.evidence import Evidence
from nodeprep.diagnose.rule import Finding, Rule
from nodeprep.diagnose.rules._symptoms import follows
from nodeprep.diagnose.rules._words import times

_TO_DO = ("read_sel", "reboot_node", "cold_power_cycle_if_reboot_fails")
_AFTER = ("nccl.network", "nccl.remote_gone", "nccl.timeout", "nccl.system_error")


def explain(evidence: Evidence) -> Iterator[Finding]:
    """One finding an adapter."""
    for host in evidence.hosts:
        for _, device, events in evidence.by_device(evidence.open("adapter.stopped", host=host)):
            first = events[0]
            back = [
                event
                for event in evidence.open("adapter.recovered", host=host, device=device)
                if evidence.position(event) > evidence.position(events[-1])
            ]
            after = [e for e in evidence.open(*_AFTER, host=host) if follows(evidence, first, e)]
            yield Finding(
                layer="host",
                severity="warning" if back else "critical",
                device=device,
                summary=f"the firmware of the network adapter {device} stopped"
                + (", and its driver started it again" if back else ""),
                why=(
                    f"Its driver reports it {times(len(events))}, first in these words: "
                    f"{first.data['what']}. "
                    + (
                        "What went over this adapter failed until it was back; no GPU is at fault."
                        if back
                        else "What goes over this adapter fails or waits; no GPU is at fault."
                    )
                ),
                events=(*events, *back, *after),
                action="observe" if back else "drain",
                then=("read_sel",) if back else _TO_DO,
                root_event=first.kind,
            )


RULE = Rule(id="adapter_stopped", rank=58, explain=explain)
