"""Gigabyte, and other boards with AMI's BMC: names are codes per CPU generation, display names are not."""

from __future__ import annotations

from nodeprep.bmc.bios.vendor import Vendor

VENDOR = Vendor(id="gigabyte", makers=r"giga-?byte|giga computing|\bami\b|american megatrends")
