"""Firmware tables of a simulated node: SMBIOS (processors, memory modules) and ACPI HEST.

Source: DMTF DSP0134 sections 7.5 and 7.18; ACPI Specification 6.5 section 18.3.2.
"""

from __future__ import annotations

import struct

from nodeprep.sim.description import CpuDescription, MemoryDescription

_MIB = 1 << 20
_END = bytes((127, 4, 0xFF, 0xFE)) + b"\0\0"


def smbios(cpu: CpuDescription, memory: MemoryDescription) -> bytes:
    """The raw SMBIOS table."""
    parts: list[bytes] = []
    if cpu.dmi_threads is not None:
        parts += [_processor(socket, cpu.dmi_threads // cpu.sockets) for socket in range(cpu.sockets)]
    parts += [_memory_module(slot, memory.module_bytes) for slot in range(memory.modules)]
    return b"".join(parts) + _END


def hest(*, firmware_first: bool) -> bytes:
    """A HEST with one AER root port source and one generic source."""
    aer_root = bytearray(48)
    struct.pack_into("<HHHBB", aer_root, 0, 6, 0, 0, int(firmware_first), 1)
    generic = bytearray(64)
    struct.pack_into("<HH", generic, 0, 9, 1)
    body = struct.pack("<I", 2) + bytes(generic) + bytes(aer_root)
    header = struct.pack(
        "<4sIBB6s8sI4sI", b"HEST", 36 + len(body), 1, 0, b"SIMUL ", b"NODEPREP", 1, b"SIMU", 1
    )
    return header + body


def _processor(socket: int, threads: int) -> bytes:
    data = bytearray(0x30)
    struct.pack_into("<BBH", data, 0, 4, len(data), 0x0400 + socket)
    data[0x18] = 0x41  # populated, enabled
    data[0x25] = min(threads, 0xFF)
    struct.pack_into("<H", data, 0x2E, threads)
    return bytes(data) + b"\0\0"


def _memory_module(slot: int, size_bytes: int) -> bytes:
    data = bytearray(0x28)
    struct.pack_into("<BBH", data, 0, 17, len(data), 0x1100 + slot)
    size_mib = size_bytes // _MIB
    struct.pack_into("<H", data, 0x0C, min(size_mib, 0x7FFF))
    struct.pack_into("<I", data, 0x1C, size_mib)
    return bytes(data) + b"\0\0"
