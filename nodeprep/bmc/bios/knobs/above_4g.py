"""PCI memory above 4 GiB."""

from __future__ import annotations

from nodeprep.bmc.bios.knob import BiosKnob
from nodeprep.bmc.bios.match import Words

KNOB = BiosKnob(
    id="above_4g",
    title="PCI memory above 4 GiB",
    matcher=Words(
        looked_for="Above 4G Decoding, Memory Mapped I/O above 4GB, or 64-bit PCI resource allocation",
        groups=(
            (
                "above4gdecoding",
                "above4gbdecoding",
                "above4gdecode",
                "abovefourgdecoding",
                "above4g",
                "mmioabove4g",
                "mmioabove4gb",
                "memorymappedioabove4g",
                "memorymappedioabove4gb",
                "memorymappedioabove4gib",
                "above4gbmmio",
                "above4gmmio",
                "above4gmmiobiosassignment",
                "above4gbmmiobiosassignment",
                "64bitresourceallocation",
                "64bitresourcehandling",
                "64bitresourceshandling",
                "64bitresourcesallocation",
            ),
        ),
        never=("mirror",),
    ),
    risks={
        "disabled": ("GPUs have memory windows of many GiB: below 4 GiB they get none, and no driver binds",),
        "enabled": ("a 32-bit system could not use such devices",),
    },
)
