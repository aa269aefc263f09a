"""NVIDIA: DGX with AMI's BMC, Grace with OpenBMC."""

from __future__ import annotations

from nodeprep.bmc.bios.vendor import Vendor

VENDOR = Vendor(
    id="nvidia",
    makers=r"nvidia",
    # Source: AttributeRegistry of DGX H100: AMI's switch and the reference code's, both of all slots.
    together={"sriov": ("SRIOVEnable", "SriovSupport")},
    absent={"pcie_link_gen": "DGX H100 is known to have none"},
)
