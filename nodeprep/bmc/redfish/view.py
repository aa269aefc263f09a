"""The BIOS of a BMC in the form the knobs ask."""

from __future__ import annotations

from nodeprep.bmc.bios.attributes import BiosView
from nodeprep.bmc.redfish.bios import BiosSettings
from nodeprep.bmc.redfish.registry import Registry


def bios_view(bios: BiosSettings, registry: Registry) -> BiosView:
    """What the knobs need of settings and registry."""
    return BiosView(registry=registry, current=bios.current, pending=bios.pending)
