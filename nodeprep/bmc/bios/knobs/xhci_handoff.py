"""Who owns the USB controllers when the kernel takes over."""

from __future__ import annotations

from nodeprep.bmc.bios.knob import BiosKnob
from nodeprep.bmc.bios.match import Words

KNOB = BiosKnob(
    id="xhci_handoff",
    title="XHCI hand-off",
    matcher=Words(
        looked_for="XHCI Hand-off. EHCI hand-off and switches of USB controllers or ports are not it",
        groups=(("xhcihandoff", "xhcihandover", "xhcioshandoff"),),
    ),
    risks={
        "disabled": ("a system that does not take USB controllers by itself has no USB; Linux does",),
        "enabled": ("firmware that serves USB in SMIs can hold up all CPUs for milliseconds",),
    },
)
