"""The ACPI Hardware Error Source Table: does firmware handle PCIe errors before the kernel?

Source: ACPI Specification 6.5, section 18.3.2.
"""

from __future__ import annotations

import struct

from .paths import exists, read_bytes
from .reading import NotSupported

_TABLES = "/sys/firmware/acpi/tables"
_HEADER_BYTES = 40
_FIRMWARE_FIRST = 0x01
_PCIE_SOURCES = (6, 7, 8)  # AER root port, endpoint, bridge
_BYTES_OF_TYPE = {2: 20, 6: 48, 7: 44, 8: 56, 9: 64, 10: 92}
# Machine-check sources end in a list of banks: type -> (bytes before it, offset of the bank count).
_BANKED_TYPES = {0: (40, 32), 1: (48, 44), 11: (48, 44)}
_BANK_BYTES = 28


def firmware_first(root: str) -> bool:
    """True when a PCIe error source is marked firmware-first.

    Raises:
        NotSupported: The machine has no ACPI.
        OSError: The table may not be read (it needs root).
        ValueError: The table is damaged.
    """
    if not exists(root, _TABLES):
        raise NotSupported("the machine has no ACPI tables")
    if not exists(root, f"{_TABLES}/HEST"):
        return False
    return parse(read_bytes(root, f"{_TABLES}/HEST"))


def parse(table: bytes) -> bool:
    """As `firmware_first`, of a table already read.

    Raises:
        ValueError: The table is damaged or has a source type of unknown size.
    """
    if len(table) < _HEADER_BYTES or table[:4] != b"HEST":
        raise ValueError("the HEST table is damaged")
    (count,) = struct.unpack_from("<I", table, 36)
    at = _HEADER_BYTES
    for _ in range(count):
        if at + 8 > len(table):
            raise ValueError(f"the HEST table announces {count} sources but ends before the last")
        (kind,) = struct.unpack_from("<H", table, at)
        if kind in _PCIE_SOURCES and table[at + 6] & _FIRMWARE_FIRST:
            return True
        at += _source_bytes(table, at, kind)
    return False


def _source_bytes(table: bytes, at: int, kind: int) -> int:
    if kind in _BYTES_OF_TYPE:
        return _BYTES_OF_TYPE[kind]
    if kind in _BANKED_TYPES:
        fixed, count_at = _BANKED_TYPES[kind]
        if at + count_at < len(table):
            return fixed + _BANK_BYTES * table[at + count_at]
    raise ValueError(f"the HEST table has an error source of unknown type {kind} at offset {at}")
