"""A device does not answer the IOMMU any more, and all that waits for the IOMMU hangs with it."""

from __future__ import annotations

from collections.abc import Iterator

from nodeprep.diagnose.device import same_slot
from nodeprep.diagnose.evidence import Evidence
from nodeprep.diagnose.rule import Finding, Rule
from nodeprep.diagnose.rules._symptoms import follows, symptoms
from nodeprep.diagnose.rules._words import listed, times, total

# An endpoint's own error and what the IOMMU says of it are one moment, but for their timeouts.
_CAUSE_WINDOW_S = 60.0


def explain(evidence: Evidence) -> Iterator[Finding]:
    """One finding a host: whoever is silent, CPUs wait in the same queue."""
    for host in evidence.hosts:
        silent = evidence.open("iommu.silent_device", host=host)
        stalled = evidence.open("iommu.stalled", host=host)
        if not silent and not stalled:
            continue
        first = min((*silent, *stalled), key=evidence.position)
        # Where the IOMMU names nobody, an error of an endpoint just before does.
        before = [
            event
            for event in evidence.open("aer.fatal.", "aer.nonfatal.", host=host)
            if evidence.clock.within(event, first, _CAUSE_WINDOW_S)
        ]
        devices = list(dict.fromkeys(event.device for event in silent or before if event.device))
        gpu = any(same_slot(device, known) for device in devices for known in evidence.gpus(host))
        hung = [
            event
            for event in evidence.open("host.soft_lockup", "host.task_hung", host=host)
            if follows(evidence, first, event)
        ]
        # The driver of a GPU that hangs says so itself; then this is its consequence.
        after = [event for event in evidence.open("iommu.fault", host=host) if event.device in devices]
        yield Finding(
            layer="firmware_pcie",
            severity="critical" if gpu else "error",
            device=devices[0] if len(devices) == 1 else "",
            summary=(
                f"{listed(devices)} no longer answers the IOMMU"
                if devices
                else "the IOMMU waits for a device that no longer answers"
            ),
            why=(
                f"The IOMMU waited {times(total(silent) + total(stalled))} in vain for an invalidation to be "
                "confirmed. "
                + (
                    f"{listed(devices)} is meant: it hangs, sleeps or is gone."
                    if devices
                    else "No line names the device: one behind that IOMMU hangs, sleeps or is gone."
                )
                + (" CPUs that wait in the same queue hang with it." if hung else "")
            ),
            events=tuple(
                {
                    id(event): event
                    for event in (
                        *before,
                        *silent,
                        *stalled,
                        *after,
                        *hung,
                        *symptoms(evidence, host, first, ()),
                    )
                }.values()
            ),
            action="drain",
            then=("cold_power_cycle", "inspect_hardware", "check_acs_and_iommu", "read_kernel_log"),
            root_event=(silent or before or stalled)[0].kind,
        )


# After the rules of lost GPUs, before those of refused accesses and hung tasks.
RULE = Rule(id="iommu_silent", rank=37, explain=explain)
