"""The highest PCIe generation of links."""

from __future__ import annotations

from nodeprep.bmc.bios.knob import GENERATIONS, BiosKnob
from nodeprep.bmc.bios.link_speed import LinkSpeed

KNOB = BiosKnob(
    id="pcie_link_gen",
    title="highest PCIe generation of links",
    values=GENERATIONS,
    matcher=LinkSpeed(),
    prefer="slots",
    by_slot=True,
    risks={
        "*": (
            "a lower generation costs bandwidth: half for each step",
            "it is a limit: what a link runs at under load is to be seen on the host",
        ),
        "auto": ("links run at the highest generation both ends know",),
    },
)
