"""Who a BMC is, over Redfish."""

from __future__ import annotations

import uuid
from typing import Any

from nodeprep.bmc.identity import BmcIdentity
from nodeprep.bmc.redfish.service import Service


def identity(service: Service) -> BmcIdentity:
    """The system behind the BMC, and the BMC's firmware."""
    who = service.identity
    serial = service.system.body.get("SerialNumber")
    return BmcIdentity(
        # IANA numbers are IPMI's.
        maker=0,
        product=0,
        firmware=who.bmc_firmware,
        guid=_guid(service.system.body.get("UUID")),
        manufacturer=who.manufacturer,
        model=who.model,
        serial=serial.strip() if isinstance(serial, str) else "",
    )


def _guid(value: Any) -> str:
    try:
        found = uuid.UUID(value) if isinstance(value, str) else None
    except ValueError:
        return ""
    # All zeros: a board whose maker wrote none.
    return str(found) if found is not None and found.int else ""
