"""Intel's own boards: no registry, all values are integers."""

from __future__ import annotations

from nodeprep.bmc.bios.vendor import Vendor

# Source: BIOS of S2600BPB, and the reference code of that CPU generation for what the numbers mean.
VENDOR = Vendor(
    id="intel",
    makers=r"\bintel\b",
    codes={
        "pcie_link_gen": {"auto": 0, "1": 1, "2": 2, "3": 3},
        "aspm": {"disabled": 0},
        "package_c_states": {"disabled": 0, "enabled": 7},
    },
)
