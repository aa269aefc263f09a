"""Translation of DMA addresses: VT-d, AMD-Vi, SMMU."""

from __future__ import annotations

from nodeprep.bmc.bios.knob import BiosKnob
from nodeprep.bmc.bios.match import Words

KNOB = BiosKnob(
    id="iommu",
    title="IOMMU (VT-d, AMD-Vi, SMMU)",
    matcher=Words(
        looked_for=(
            "IOMMU, VT-d, Virtualization Technology for Directed I/O, AMD I/O virtualization or SMMU. "
            "Protection of DMA before the boot, for the kernel or for Secured-core is not it"
        ),
        groups=(
            (
                "iommu",
                "vtd",
                "vtfordirectedio",
                "vtfordirectediovtd",
                "virtualizationtechnologyfordirectedio",
                "virtualizationtechnologyfordirectediovtd",
                "virtualizationfordirectedio",
                "amdvi",
                "iovt",
                "iovirtualization",
                "iovirtualizationtechnology",
                "smmu",
                "smmuv3",
            ),
        ),
        never=("preboot", "controliommu", "securedcore", "dmaprotection", "optin", "debug", "ntb"),
    ),
    risks={
        "disabled": (
            "more than 255 CPUs need interrupt remapping, which goes with the IOMMU: some would be lost",
            "no device can be given to a virtual machine, and no DMA is kept from memory that is not its own",
        ),
        "enabled": ("DMA addresses are translated, which can cost bandwidth of copies between devices",),
    },
)
