"""PCI addresses, as the many tools write them, in one form: dddd:bb:dd.f."""

from __future__ import annotations

import re

# NVML prints eight digits of domain in upper case, NVRM four and no function, lspci none at all.
ADDRESS = r"(?:[0-9a-fA-F]{4,8}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.[0-7])?"
_PARTS = re.compile(
    r"(?:(?P<domain>[0-9a-f]{4,8}):)?(?P<bus>[0-9a-f]{2}):(?P<slot>[0-9a-f]{2})(?:\.(?P<function>[0-7]))?"
)


def address(text: str) -> str:
    """`0000000B:00:00.0`, `0b:00.0`, `PCI:000b:00:00` as `000b:00:00.0`; "" when it is no address."""
    match = _PARTS.fullmatch(text.strip().lower().removeprefix("pci:"))
    if not match:
        return ""
    number = int(match["domain"] or "0", 16)
    return f"{number:04x}:{match['bus']}:{match['slot']}.{match['function'] or '0'}"


def from_requester_id(requester_id: int, in_domain: str = "0000") -> str:
    """The address of a 16-bit requester id: 0x0010 is 00:02.0."""
    return f"{in_domain}:{requester_id >> 8 & 0xFF:02x}:{requester_id >> 3 & 0x1F:02x}.{requester_id & 7}"


def domain(device: str) -> str:
    """The domain of an address: "0000", and "10000" behind some storage controllers."""
    return device.rsplit(":", 2)[0]


def bus(device: str) -> int:
    """The bus number of an address."""
    return int(device.rsplit(":", 2)[1], 16)


def same_slot(one: str, other: str) -> bool:
    """Whether two addresses are functions of one device, as a GPU and its audio function are."""
    return bool(one) and one[:-2] == other[:-2]
