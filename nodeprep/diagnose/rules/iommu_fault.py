"""The IOMMU refused accesses of a GPU, or of another device."""

from __future__ import annotations

from collections.abc import Iterator

from nodeprep.diagnose.device import same_slot
from nodeprep.diagnose.evidence import Evidence
from nodeprep.diagnose.rule import Finding, Rule
from nodeprep.diagnose.rules._symptoms import follows, symptoms
from nodeprep.diagnose.rules._words import times, total

_TOGETHER_S = 60.0


def explain(evidence: Evidence) -> Iterator[Finding]:
    """One finding a device."""
    for host, device, events in evidence.by_device(evidence.open("iommu.fault")):
        gpu = any(same_slot(device, known) for known in evidence.gpus(host))
        alone = {each.device for each in evidence.seen("iommu.fault", host=host)} == {device}
        suppressed = evidence.seen("iommu.suppressed", host=host) if alone else []
        many = total(events) + sum(int(each.data["suppressed"]) for each in suppressed)
        translated = [
            each
            for each in evidence.seen("boot.cmdline", host=host)
            if any("iommu" in str(word) for word in each.data["args"])
        ][-1:]
        # What the GPU's own engines could not reach is told by the driver as a page fault.
        after = [
            each
            for each in evidence.open("xid.31", "xid.43", "xid.45", host=host, device=device)
            if gpu and follows(evidence, events[0], each, _TOGETHER_S)
        ]
        # Firmware's own devices (USB, graphics of the BMC) make a few at boot.
        yield Finding(
            layer="config",
            severity="error" if gpu else "warning" if many > 3 else "info",
            device=device,
            summary=f"the IOMMU refused accesses of {device}" + (", a GPU" if gpu else ""),
            why=(
                f"Refused {times(many)}. With translation on, transfers between devices "
                "and driver must be mapped; "
                "peer copies that are not fail or hang."
            ),
            events=(
                *translated,
                *events,
                *suppressed,
                *after,
                *(symptoms(evidence, host, events[0], (31,)) if gpu else ()),
            ),
            action="fix_config",
            then=("use_iommu_pt", "check_acs_and_iommu", "update_driver_if_it_returns"),
            root_event="iommu.fault",
            count=many,
        )


RULE = Rule(id="iommu_fault", rank=38, explain=explain)
