"""Lenovo ThinkSystem: XCC. Its AMI boards need no rules of their own."""

from __future__ import annotations

from nodeprep.bmc.bios.vendor import Vendor

VENDOR = Vendor(
    id="lenovo",
    makers=r"\blenovo\b",
    presets={"OperatingModes_ChooseOperatingMode": "CustomMode"},
    absent={"xhci_handoff": "ThinkSystem servers with XCC are known to have none"},
)
