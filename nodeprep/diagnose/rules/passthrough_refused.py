"""A device cannot be given to a guest: its IOMMU group is shared, or firmware keeps memory for it."""

from __future__ import annotations

from collections.abc import Iterator

from nodeprep.diagnose.evidence import Evidence
from nodeprep.diagnose.rule import Finding, Rule
from nodeprep.diagnose.rules._words import total

_SAID = {
    "vfio.group_not_viable": (
        "{device} shares its IOMMU group with a device that the host uses",
        "A guest gets a whole group or nothing: every other function in it must be bound to vfio-pci, or "
        "have no driver. Which functions share a group is decided by ACS of the ports above them.",
        ("bind_iommu_group_to_vfio", "check_acs_and_iommu"),
    ),
    "vfio.reserved_memory": (
        "firmware keeps memory of the host for {device} (RMRR), so it cannot be given to a guest",
        "The BIOS lets its management use the device by DMA; the kernel does not hand such a device on.",
        ("take_device_out_of_rmrr",),
    ),
}


def explain(evidence: Evidence) -> Iterator[Finding]:
    """One finding a device and reason."""
    for kind, (summary, why, then) in _SAID.items():
        for _, device, events in evidence.by_device(evidence.open(kind)):
            yield Finding(
                layer="config",
                severity="error",
                device=device,
                summary=summary.format(device=device),
                why=why,
                events=tuple(events),
                action="fix_config",
                then=then,
                count=total(events),
            )


RULE = Rule(id="passthrough_refused", rank=39, explain=explain)
