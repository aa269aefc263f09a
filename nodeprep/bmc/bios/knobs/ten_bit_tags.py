"""More requests under way at a time on a PCIe link."""

from __future__ import annotations

from nodeprep.bmc.bios.knob import BiosKnob
from nodeprep.bmc.bios.match import Words

KNOB = BiosKnob(
    id="ten_bit_tags",
    title="PCIe 10-bit tags",
    matcher=Words(
        looked_for="PCIe ten bit tags (10-bit tag support). The extended (8-bit) tag field is not it",
        groups=(
            (
                "tenbittag",
                "tenbittags",
                "10bittag",
                "10bittags",
                "port10bittag",
                "porttenbittag",
                "10bittagrequester",
                "tenbittagrequester",
            ),
        ),
        ports=(r"socket\d+pcie\d+(?:ext)?10bittagreq(?:uester)?(?:enable)?",),
    ),
    by_slot=True,
    risks={
        "enabled": ("a device that cannot deal with ten bit tags hangs or reports completion timeouts",),
        "disabled": ("256 requests at a time do not fill a link of generation 4 and above",),
    },
)
