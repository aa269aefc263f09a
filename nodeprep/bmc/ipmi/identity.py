"""Who a BMC is. Source: IPMI 2.0, 20.1 Get Device ID, 22.14 Get System GUID.

The FRU (board serial number) is not read: hundreds of commands on many BMCs, and the node tells it too.
"""

from __future__ import annotations

import uuid

from nodeprep.bmc.failures import BmcRefused, BmcUnreachable
from nodeprep.bmc.identity import BmcIdentity
from nodeprep.bmc.ipmi.session import Asking

_APPLICATION = 0x06
_DEVICE_ID, _SYSTEM_GUID = 0x01, 0x37


def identity(session: Asking) -> BmcIdentity:
    """The BMC's maker, product and firmware, and the system's GUID where it has one."""
    data = session.command(_APPLICATION, _DEVICE_ID)
    if len(data) < 11:
        raise BmcUnreachable(f"a device id of {len(data)} bytes is none")
    return BmcIdentity(
        maker=int.from_bytes(data[6:9], "little") & 0xFFFFF,
        product=int.from_bytes(data[9:11], "little"),
        # The minor version is in BCD.
        firmware=f"{data[2] & 0x7F}.{data[3]:02x}",
        guid=_guid(session),
    )


def _guid(session: Asking) -> str:
    try:
        data = session.command(_APPLICATION, _SYSTEM_GUID)
    except BmcRefused:
        # Optional for a BMC.
        return ""
    # BMCs disagree on the byte order, so it is a name to compare with an earlier one of the same BMC.
    return str(uuid.UUID(bytes=data)) if len(data) == 16 and any(data) else ""
