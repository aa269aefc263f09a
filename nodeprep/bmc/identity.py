"""Who a BMC is, whatever the protocol."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BmcIdentity:
    """A BMC as it introduces itself.

    Attributes:
        maker: IANA enterprise number, for example 674 (Dell), 10876 (Supermicro); 0 over Redfish, which has
            a name in its place.
        guid: Of the system; empty when the BMC has none.
        manufacturer, model, serial: Of the system, as the BMC writes them; empty over IPMI.
    """

    maker: int
    product: int
    firmware: str
    guid: str
    manufacturer: str = ""
    model: str = ""
    serial: str = ""
