"""BIOS knobs. Named only: `nodeprep bios` reads and writes them, one BMC at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from nodeprep.knobs._knob import Knob
from nodeprep.model.facts import NodeFacts
from nodeprep.model.plan import Change
from nodeprep.model.policy import BiosPolicy
from nodeprep.model.spec import NodeSpec

_WHYS = {
    "pcie_link_gen": "a lower PCIe generation has more signal margin over risers, cables and switches",
    "iommu": "with the IOMMU off, DMA is not translated on its way to the GPU",
    "aspm": "a link that never leaves L0 cannot fail on the way back",
    "xhci_handoff": "firmware that keeps its hands on USB can hold the node up for milliseconds",
}
_REASON = "plan and apply do not ask the BMC: set it with nodeprep bios apply; the checks judge the effect"
_RISKS = ("takes effect with the next reset",)


def _plan(spec: NodeSpec, _facts: NodeFacts) -> Iterator[Change]:
    for field in fields(BiosPolicy):
        wanted = getattr(spec.policy.bios, field.name)
        if wanted is not None:
            yield Change(
                knob=KNOB.id,
                subject="node",
                status="unsupported",
                old=f"{field.name} not read",
                new=f"{field.name} {wanted}",
                why=_WHYS[field.name],
                reason=_REASON,
                risks=_RISKS,
                needs_reboot=True,
            )


KNOB = Knob(id="bios", title="BIOS settings", risks=_RISKS, needs_reboot=True, plan=_plan)
