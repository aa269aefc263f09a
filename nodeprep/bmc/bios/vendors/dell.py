"""Dell: iDRAC."""

from __future__ import annotations

from nodeprep.bmc.bios.vendor import Fallback, Vendor

# Source: AttributeRegistry of PowerEdge R750, ProcVirtualization: VT-x and VT-d (DMAR) in one.
_VIRTUALIZATION = Fallback(
    ("ProcVirtualization",),
    "Virtualization Technology is the only switch of VT-d on Dell's Intel servers",
    ("it switches VT-x as well: with it off, no virtual machine runs",),
)

VENDOR = Vendor(
    id="dell",
    makers=r"\bdell\b",
    fallbacks={"iommu": _VIRTUALIZATION},
    presets={"SysProfile": "Custom", "WorkloadProfile": "NotConfigured"},
    absent={
        "pcie_link_gen": "Intel PowerEdge servers of generations 15 to 17 are known to have none",
        "xhci_handoff": "PowerEdge servers are known to have none",
    },
)
