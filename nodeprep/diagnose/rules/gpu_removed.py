"""A GPU was taken out of the kernel's PCI tree while programs had it open."""

from __future__ import annotations

from collections.abc import Iterator

from nodeprep.diagnose.evidence import Evidence
from nodeprep.diagnose.rule import Finding, Rule
from nodeprep.diagnose.rules._words import of, times, total


def explain(evidence: Evidence) -> Iterator[Finding]:
    """One finding a GPU that no fault of its link took away."""
    for _, device, events in evidence.by_device(evidence.open("gpu.removed_in_use")):
        yield Finding(
            layer="config",
            severity="error",
            device=device,
            summary=f"{of(device)} was removed from the system while programs still used it",
            why=(
                f"Told {times(total(events))}. A write to the device's remove or unbind file, a tool that "
                "switches the GPU off, or a hot-unplug did it. The driver waits for the last program to "
                "close the GPU, and whoever removed it waits as well. The card is fine."
            ),
            events=tuple(events),
            action="reboot_node",
            then=("stop_programs_before_removal",),
            count=total(events),
        )


RULE = Rule(id="gpu_removed", rank=58, explain=explain)
