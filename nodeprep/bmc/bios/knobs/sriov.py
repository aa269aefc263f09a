"""Room for virtual functions."""

from __future__ import annotations

from nodeprep.bmc.bios.knob import BiosKnob
from nodeprep.bmc.bios.match import Words

KNOB = BiosKnob(
    id="sriov",
    title="SR-IOV",
    matcher=Words(
        looked_for="SR-IOV (Single Root I/O Virtualization) of the board; that of an adapter is not it",
        groups=(
            (
                "sriov",
                "singlerootiovirtualization",
                "singlerootiovirtualizationsriov",
                "singlerootiov",
                "sriovsinglerootiovirtualization",
            ),
        ),
    ),
    risks={
        "disabled": ("virtual functions of adapters and GPUs get no room and cannot be made",),
        "enabled": ("room for virtual functions is kept, whether they are used or not",),
    },
)
