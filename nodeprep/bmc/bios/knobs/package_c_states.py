"""Sleep states of a whole CPU package."""

from __future__ import annotations

from nodeprep.bmc.bios.knob import BiosKnob
from nodeprep.bmc.bios.match import Words

KNOB = BiosKnob(
    id="package_c_states",
    title="C-states of the CPU package",
    matcher=Words(
        looked_for=(
            "Package C-states (Intel) or Data Fabric C-states (AMD's for the whole package). C-states of "
            "cores are not it: they decide about turbo frequencies too"
        ),
        groups=(
            (
                "packagecstate", "packagecstates", "packagecstatelimit", "packagecstateslimit", "pkgcstate",
                "pkgcstates", "pkgcstatelimit", "minprocidlepkgstate", "minprocidlepowerpkgstate",
                "minimumprocessoridlepowerpackagecstate", "minimumprocessoridlepowerpackagestate",
            ),
            ("dfcstate", "dfcstates", "datafabriccstate", "datafabriccstates"),
        ),
        never=("latency", "criteria", "demotion", "undemotion"),
        notes=("", "AMD's package sleeps by the C-states of its data fabric (DF)"),
    ),
    on=(
        "nolimit", "nopackagelimit", "c6retention", "c6retentionstate", "c6", "c6state", "c6nonretention",
        "c6nonretentionstate",
    ),
    off=("c0c1", "c0c1state", "c0", "c0state", "nostate", "nopackagestate", "nopackagecstate", "nocstates"),
    auto_is_on=True,
    binary=False,
    implied_by=Words(
        looked_for="C-states of all cores",
        groups=(("cstates", "cstate", "minprocidlepower", "minimumprocessoridlepowercorecstate"),),
    ),
    risks={
        "disabled": ("the package stays awake: tens of watts more when idle, and less turbo for few cores",),
        "enabled": ("DMA that meets a sleeping package waits for it: latency and jitter of GPU copies",),
    },
)  # fmt: skip
