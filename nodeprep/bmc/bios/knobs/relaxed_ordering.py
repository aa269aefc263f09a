"""Whether writes may pass each other."""

from __future__ import annotations

from nodeprep.bmc.bios.knob import BiosKnob
from nodeprep.bmc.bios.match import Words

KNOB = BiosKnob(
    id="relaxed_ordering",
    title="PCIe relaxed ordering",
    matcher=Words(
        looked_for=(
            "Relaxed Ordering of PCIe devices. That of the CPU's own DMA engine (CbRelaxedOrdering) and of "
            "remote peer-to-peer traffic are not it"
        ),
        groups=(("relaxedordering", "devicerelaxedordering"),),
        # Source: Intel's reference code, menu "IOAT Configuration".
        menu_notes={"ioat": "its menu is that of the CPU's own DMA engine: it may be for that alone"},
        never=("cbrelaxed", "remotep2p", "p2prelaxed"),
    ),
    risks={
        "disabled": ("transfers wait for each other: network adapters and GPUs lose bandwidth",),
        "enabled": (
            "some old devices lose or mix up data; CPUs of Intel before Ice Lake are slower with it",
        ),
    },
)
