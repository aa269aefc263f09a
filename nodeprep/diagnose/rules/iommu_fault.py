"""The IOMMU refused accesses of a GPU, or of another device."""

from __future__ import annotations

from collections.abc import Iterator

from nodeprep.diagnose.device import same_slot
from nodeprep.diagnose.evidence import Evidence
from nodeprep.diagnose.rule import Finding, Rule
from nodeprep.diagnose.rules._symptoms import symptoms
from nodeprep.diagnose.rules._words import times, total


def explain(evidence: Evidence) -> Iterator[Finding]:
    """One finding a device."""
    for host, device, events in evidence.by_device(evidence.open("iommu.fault")):
        gpu = any(same_slot(device, known) for known in evidence.gpus(host))
        # Firmware's own devices (USB, graphics of the BMC) make a few at boot.
        yield Finding(
            layer="config",
            severity="error" if gpu else "warning" if total(events) > 3 else "info",
            device=device,
            summary=f"the IOMMU refused accesses of {device}" + (", a GPU" if gpu else ""),
            why=(
                f"Refused {times(total(events))}. With translation on, transfers between devices "
                "and driver must be mapped; "
                "peer copies that are not fail or hang."
            ),
            events=(*events, *(symptoms(evidence, host, events[0], (31,)) if gpu else ())),
            action="fix_config",
            then=("use_iommu_pt", "check_acs_and_iommu", "update_driver_if_it_returns"),
            count=total(events),
        )


RULE = Rule(id="iommu_fault", rank=58, explain=explain)
