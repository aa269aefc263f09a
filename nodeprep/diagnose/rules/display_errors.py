"""The driver's display part complains: a matter of screens, until the GPU makes no progress at all."""

from __future__ import annotations

from collections.abc import Iterator

from nodeprep.diagnose.evidence import Evidence
from nodeprep.diagnose.rule import Finding, Rule
from nodeprep.diagnose.rules._words import of, times, total


def explain(evidence: Evidence) -> Iterator[Finding]:
    """One finding a host; beside a fault of a GPU it is no news."""
    for host in evidence.hosts:
        errors = evidence.open("display.error", "display.gpu_stuck", host=host)
        if not errors:
            continue
        stuck = [event for event in errors if event.kind == "display.gpu_stuck"]
        gpus = evidence.gpus(host)
        device = gpus[0] if len(gpus) == 1 else ""
        yield Finding(
            layer="driver",
            severity="error" if stuck else "info",
            device=device,
            summary=f"{of(device)} makes no progress for the display driver"
            if stuck
            else "the display driver could not set or query a screen",
            why=(
                f"It waited for the GPU {times(total(stuck))} in vain, and no fault of the GPU says why: a "
                "hang, often after a sleep state."
                if stuck
                else f"Said {times(total(errors))}, with no fault of a GPU beside it. It concerns screens; "
                "programs that compute do not need them."
            ),
            events=tuple(errors),
            action="reset_gpu" if stuck else "observe",
            then=("reboot_node_if_reset_fails", "update_driver_if_it_returns") if stuck else (),
            root_event=(stuck or errors)[0].kind,
            count=total(stuck or errors),
            yields_to=("xid.", "gpu.fallen_off_bus", "gsp.timeout"),
        )


RULE = Rule(id="display_errors", rank=83, explain=explain)
