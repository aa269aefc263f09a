"""SMBIOS structures from the raw table that the kernel exports; no dmidecode needed.

Source: DMTF DSP0134 (SMBIOS reference specification), sections 6.1, 7.5 and 7.18.
"""

from __future__ import annotations

import struct
from typing import Iterator, Tuple

from .paths import exists, read_bytes
from .reading import NotSupported

TABLE = "/sys/firmware/dmi/tables/DMI"

PROCESSOR = 4
MEMORY_DEVICE = 17
_END_OF_TABLE = 127


def structures(root: str) -> Iterator[Tuple[int, bytes]]:
    """Type and formatted area (header included, strings left out) of each structure.

    Raises:
        NotSupported: The machine has no SMBIOS table.
        OSError: The table may not be read (it needs root).
        ValueError: The table is damaged.
    """
    if not exists(root, TABLE):
        raise NotSupported("the machine has no SMBIOS table")
    table = read_bytes(root, TABLE)
    at = 0
    while at + 4 <= len(table):
        kind, length = table[at], table[at + 1]
        if length < 4 or at + length > len(table):
            raise ValueError(f"{TABLE}: damaged structure at offset {at}")
        yield kind, table[at : at + length]
        if kind == _END_OF_TABLE:
            return
        strings_end = table.find(b"\0\0", at + length)
        if strings_end < 0:
            raise ValueError(f"{TABLE}: the strings of the structure at offset {at} do not end")
        at = strings_end + 2


def processor_threads(root: str) -> int:
    """Hardware threads that firmware enabled, over all populated sockets.

    Raises:
        NotSupported: There is no table, or firmware does not fill in the thread counts.
        OSError: The table may not be read.
        ValueError: The table is damaged.
    """
    total = 0
    for kind, data in structures(root):
        if kind == PROCESSOR and len(data) > 0x18 and data[0x18] & 0x40:
            total += _threads(data)
    if total == 0:
        raise NotSupported("SMBIOS describes no populated processor socket")
    return total


def _threads(data: bytes) -> int:
    # Thread Enabled (SMBIOS 3.6) also knows about SMT switched off in the BIOS; Thread Count may not.
    if len(data) >= 0x32:
        (enabled,) = struct.unpack_from("<H", data, 0x30)
        if enabled not in (0, 0xFFFF):
            return int(enabled)
    count = data[0x25] if len(data) > 0x25 else 0
    if count == 0xFF and len(data) >= 0x30:
        (count,) = struct.unpack_from("<H", data, 0x2E)
    if count in (0, 0xFFFF):
        raise NotSupported("SMBIOS gives no thread count for a populated socket")
    return int(count)


def installed_memory_bytes(root: str) -> int:
    """Sum of the sizes of all populated memory slots.

    Raises:
        NotSupported: There is no table, or it describes no memory.
        OSError: The table may not be read.
        ValueError: The table is damaged, or a module's size is unknown to firmware.
    """
    total = 0
    for kind, data in structures(root):
        if kind == MEMORY_DEVICE and len(data) >= 0x0E:
            total += _module_bytes(data)
    if total == 0:
        raise NotSupported("SMBIOS describes no memory modules")
    return total


def _module_bytes(data: bytes) -> int:
    size = int(struct.unpack_from("<H", data, 0x0C)[0])
    if size == 0xFFFF:
        raise ValueError("SMBIOS: the size of a memory module is unknown to firmware")
    if size == 0x7FFF and len(data) >= 0x20:
        (extended_mib,) = struct.unpack_from("<I", data, 0x1C)
        return int(extended_mib & 0x7FFFFFFF) << 20
    if size & 0x8000:
        return (size & 0x7FFF) << 10
    return size << 20
