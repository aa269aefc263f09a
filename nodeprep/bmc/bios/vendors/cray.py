"""HPE Cray EX blades: no registry, each attribute an object that lists its values."""

from __future__ import annotations

from nodeprep.bmc.bios.vendor import Vendor

VENDOR = Vendor(id="cray", makers=r"\bcray\b")
