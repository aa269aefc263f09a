"""Who a BMC is, whatever the protocol."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BmcIdentity:
    """A BMC as it introduces itself.

    Attributes:
        maker: IANA enterprise number, for example 674 (Dell), 10876 (Supermicro).
        guid: Of the system; empty when the BMC has none.
    """

    maker: int
    product: int
    firmware: str
    guid: str
