"""Access control services of PCIe ports."""

from __future__ import annotations

from nodeprep.bmc.bios.knob import BiosKnob
from nodeprep.bmc.bios.match import Words

KNOB = BiosKnob(
    id="acs",
    title="PCIe access control services",
    matcher=Words(
        looked_for="Access Control Services (ACS, ACSCTL) of PCIe ports",
        groups=(("acs", "accesscontrolservice", "accesscontrolservices", "accesscontrolservicesacs"),),
        ports=(r"socket\d+pcie\d+(?:advertise|enable)acs",),
        never=("directtranslated", "rccdev", "p2pegress"),
    ),
    by_slot=True,
    risks={
        "disabled": (
            "devices can reach each other's memory directly: no isolation between virtual machines",
        ),
        "enabled": ("copies between GPUs go up to the root and back, which costs most of their bandwidth",),
    },
)
