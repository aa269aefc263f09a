"""Resizable base address registers."""

from __future__ import annotations

from nodeprep.bmc.bios.knob import BiosKnob
from nodeprep.bmc.bios.match import Words

KNOB = BiosKnob(
    id="resizable_bar",
    title="resizable BAR",
    matcher=Words(
        looked_for="Resizable BAR (Re-Size BAR) support",
        groups=(("resizablebar", "resizablebars", "resizebar", "resizebars", "resizeablebar", "rebar"),),
    ),
    risks={
        "disabled": ("GPU memory may be reachable through a window of 256 MiB only",),
        "enabled": ("larger windows need room above 4 GiB",),
    },
)
