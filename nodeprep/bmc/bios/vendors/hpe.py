"""HPE ProLiant and Apollo: iLO."""

from __future__ import annotations

from nodeprep.bmc.bios.vendor import Fallback, Vendor

# Source: iLO 7 on Intel has no IntelProcVtd any more.
_VIRTUALIZATION = Fallback(
    ("ProcVirtualization",),
    "Virtualization Technology is the only switch of VT-d on this server",
    ("it switches VT-x as well: with it off, no virtual machine runs",),
)

VENDOR = Vendor(
    id="hpe",
    makers=r"\bhpe\b|hewlett.packard",
    fallbacks={"iommu": _VIRTUALIZATION},
    presets={"WorkloadProfile": "Custom", "AMDPerformanceWorkloadProfile": "Disabled"},
    top_is_auto=True,
)
