"""Supermicro. Its inverted value names are told from the values it reports, not from its name."""

from __future__ import annotations

from nodeprep.bmc.bios.vendor import Vendor

VENDOR = Vendor(
    id="supermicro",
    makers=r"super ?micro",
    # Source: help text of VT-d, SYS-821GE-TNHR; its BMC has no X2APIC attribute.
    risks={
        "iommu=disabled": (
            "boards for Intel CPUs want X2APIC off as well, which may be in the BIOS setup only",
        )
    },
    absent={"pcie_link_gen": "boards for Intel CPUs are known to have none in the BIOS a BMC can reach"},
)
