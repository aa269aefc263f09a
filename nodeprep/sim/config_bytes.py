"""Configuration space of a simulated PCI function, byte by byte as hardware would answer.

Source: PCI Express Base Specification 6.0, sections 7.5.3 and 7.8.4.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from nodeprep.sim.description import ALL_ERRORS, ROOT_ERRORS, DeviceDescription

_SIZE = 4096
_POWER_AT = 0x40
_PCIE_AT = 0x60
_AER_AT = 0x100
_SPEED_CODES = {2.5: 1, 5.0: 2, 8.0: 3, 16.0: 4, 32.0: 5, 64.0: 6}
_PORT_CODES = {"endpoint": 0, "legacy_endpoint": 1, "root_port": 4, "upstream_port": 5, "downstream_port": 6}
_ASPM = ("L0s", "L1")


def config_bytes(device: DeviceDescription) -> bytes:
    """All that can be read of the device's configuration space."""
    if device.gone:
        return b"\xff" * device.config_bytes
    space = bytearray(_SIZE)
    _header(space, device)
    _power_management(space)
    _express(space, device)
    _error_reporting(space, device)
    return bytes(space[: device.config_bytes])


def _header(space: bytearray, device: DeviceDescription) -> None:
    class_code = int(device.class_code, 16)
    struct.pack_into(
        "<HHHH", space, 0x00, int(device.vendor_id, 16), int(device.device_id, 16), 0x0546, 0x0010
    )
    struct.pack_into("<I", space, 0x08, class_code << 8 | 0xA1)
    space[0x0E] = 1 if device.class_code.startswith("0604") else 0
    space[0x34] = _POWER_AT


def _power_management(space: bytearray) -> None:
    struct.pack_into("<BBH", space, _POWER_AT, 0x01, _PCIE_AT, 0x0003)


def _express(space: bytearray, device: DeviceDescription) -> None:
    capability = 2 | _PORT_CODES[device.port_type] << 4
    link_capability = (
        _SPEED_CODES[device.cap_speed_gts]
        | device.cap_width_lanes << 4
        | _bits(device.aspm_supported, _ASPM) << 10
    )
    link_status = _SPEED_CODES[device.sta_speed_gts] | device.sta_width_lanes << 4
    supported_speeds = (1 << (_SPEED_CODES[device.cap_speed_gts] + 1)) - 2
    struct.pack_into("<BBH", space, _PCIE_AT, 0x10, 0, capability)
    struct.pack_into("<H", space, _PCIE_AT + 0x08, _bits(device.reporting, ALL_ERRORS) | 0x2930)
    struct.pack_into("<I", space, _PCIE_AT + 0x0C, link_capability)
    struct.pack_into("<HH", space, _PCIE_AT + 0x10, _bits(device.aspm_enabled, _ASPM) | 0x40, link_status)
    struct.pack_into("<I", space, _PCIE_AT + 0x2C, supported_speeds)
    struct.pack_into("<H", space, _PCIE_AT + 0x30, _SPEED_CODES[device.target_speed_gts])


def _error_reporting(space: bytearray, device: DeviceDescription) -> None:
    struct.pack_into("<HH", space, _AER_AT, 0x0001, 0x0002)
    if device.port_type == "root_port":
        struct.pack_into("<I", space, _AER_AT + 0x2C, _bits(device.root_reporting, ROOT_ERRORS))


def _bits(chosen: Sequence[str], names: Sequence[str]) -> int:
    return sum(1 << position for position, name in enumerate(names) if name in chosen)
