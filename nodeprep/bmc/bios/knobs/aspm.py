"""Active state power management of PCIe links."""

from __future__ import annotations

from nodeprep.bmc.bios.knob import BiosKnob
from nodeprep.bmc.bios.match import Words

KNOB = BiosKnob(
    id="aspm",
    title="ASPM of PCIe links",
    matcher=Words(
        looked_for=(
            "ASPM for all PCIe links, or for each slot. That of the chipset's own ports (PCH, DMI), the "
            "operating system's (Native ASPM) and SATA link power management are not it"
        ),
        groups=(
            ("globalaspm", "aspmsupportglobal", "aspmglobal", "globalaspmsupport"),
            (
                "aspm",
                "aspml1",
                "aspml1linkpowermanagement",
                "aspmlinkpowermanagement",
                "activestatepowermanagement",
                "activestatepowermanagementaspm",
                "linkpowermanagement",
                "powermanagementaspm",
            ),
        ),
        ports=(
            r"\w*slot\d+\w*aspm(?:support|control)?",
            r"socket\d+pcie\d+(?:enable|advertise)aspm(?:l1)?",
            r"emb(?:nic|lom|nvme)\d*aspm",
        ),
        never=("pch", "native", "sata", "dmi", "cxl", "salp"),
    ),
    by_slot=True,
    on=("l1", "l1only", "l1enabled", "aspml1enabled", "l0sl1", "l0sandl1", "l0s"),
    auto_is_on=True,
    binary=False,
    risks={
        "disabled": ("links stay in L0, which takes a few watts a device",),
        "enabled": ("a link that wakes can fail or add microseconds of latency",),
    },
)
