"""PCI configuration space: the PCI Express capability and the AER extended capability.

Source: PCI Express Base Specification 6.0, sections 7.5.3 and 7.8.4.
"""

from __future__ import annotations

import struct
from typing import Iterator, List, Optional, Sequence, Tuple

from .reading import NotSupported

_CAPABILITY_PCIE = 0x10
_EXTENDED_AER = 0x0001
_UNPRIVILEGED_BYTES = 64
_CONVENTIONAL_BYTES = 256

_SPEEDS_GTS = {1: 2.5, 2: 5.0, 3: 8.0, 4: 16.0, 5: 32.0, 6: 64.0, 7: 128.0}
_PORT_TYPES = {
    0: "endpoint",
    1: "legacy_endpoint",
    4: "root_port",
    5: "upstream_port",
    6: "downstream_port",
    7: "pcie_to_pci_bridge",
    8: "pci_to_pcie_bridge",
    9: "rc_endpoint",
    10: "rc_event_collector",
}
_WITHOUT_LINK = ("rc_endpoint", "rc_event_collector")
_REPORTS_FOR_OTHERS = ("root_port", "rc_event_collector")
_ASPM = ("L0s", "L1")
_ERROR_CLASSES = ("correctable", "non_fatal", "fatal", "unsupported_request")


class ConfigSpace:
    """The configuration space of one function, as far as it could be read.

    Every method raises NotSupported when the function has no such register, PermissionError when
    the register lies beyond the 64 bytes that the kernel shows without root, and ValueError when
    the content makes no sense; above all when every byte is 0xff, which is how a device that is no
    longer on the bus reads.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data

    def port_type(self) -> str:
        """Device/Port Type of the PCI Express Capabilities register."""
        code = (self._pcie(0x02) >> 4) & 0xF
        if code not in _PORT_TYPES:
            raise ValueError(f"unknown PCI Express device type {code}")
        return _PORT_TYPES[code]

    def cap_speed_gts(self) -> float:
        """Highest speed the port can do, GT/s (LnkCap)."""
        return _speed(self._link(0x0C) & 0xF, "link capability")

    def cap_width_lanes(self) -> int:
        """Widest link the port can do (LnkCap)."""
        return (self._link(0x0C) >> 4) & 0x3F

    def sta_speed_gts(self) -> float:
        """Speed the link has now, GT/s (LnkSta)."""
        return _speed(self._link(0x12) & 0xF, "link status")

    def sta_width_lanes(self) -> int:
        """Width the link has now (LnkSta)."""
        return (self._link(0x12) >> 4) & 0x3F

    def target_speed_gts(self) -> float:
        """Speed the port is told to train to, GT/s (LnkCtl2)."""
        if self._pcie(0x02) & 0xF < 2:
            raise NotSupported("capability version 1 has no target link speed")
        code = self._link(0x30) & 0xF
        if code == 0:
            raise NotSupported("the device implements no target link speed")
        return _speed(code, "link control 2")

    def aspm_supported(self) -> List[str]:
        """ASPM states the port can do (LnkCap)."""
        return _names(self._link(0x0C) >> 10, _ASPM)

    def aspm_enabled(self) -> List[str]:
        """ASPM states switched on at this end (LnkCtl); none means ASPM is off here."""
        return _names(self._link(0x10), _ASPM)

    def reporting(self) -> List[str]:
        """Error classes the function may report upwards (DevCtl)."""
        return _names(self._pcie(0x08), _ERROR_CLASSES)

    def rootport_reporting(self) -> List[str]:
        """Error classes for which the root port interrupts the kernel (AER Root Error Command)."""
        if self.port_type() not in _REPORTS_FOR_OTHERS:
            raise NotSupported("not a root port")
        offset = self.aer_offset()
        if offset is None:
            raise NotSupported("the root port has no AER capability")
        return _names(self._word(offset + 0x2C), _ERROR_CLASSES[:3])

    def aer_offset(self) -> Optional[int]:
        """Where the AER extended capability lies; None when the function has none."""
        for kind, offset in self._extended_capabilities():
            if kind == _EXTENDED_AER:
                return offset
        return None

    def _link(self, register: int) -> int:
        if self.port_type() in _WITHOUT_LINK:
            raise NotSupported("integrated into the root complex: there is no link")
        return self._pcie(register)

    def _pcie(self, register: int) -> int:
        for kind, offset in self._capabilities():
            if kind == _CAPABILITY_PCIE:
                return self._word(offset + register)
        raise NotSupported("no PCI Express capability: a conventional PCI function")

    def _capabilities(self) -> Iterator[Tuple[int, int]]:
        if self._word(0x00) == 0xFFFF:
            raise ValueError("reads all 0xff: the device no longer answers on the bus")
        if not self._word(0x06) & 0x10:
            return
        offset = self._word(0x34) & 0xFC
        seen = set()
        while offset:
            if offset in seen:
                raise ValueError("the capability list of the device goes in circles")
            seen.add(offset)
            header = self._word(offset)
            yield header & 0xFF, offset
            offset = (header >> 8) & 0xFC

    def _extended_capabilities(self) -> Iterator[Tuple[int, int]]:
        self._pcie(0x02)  # only a PCI Express function has the extended space
        if _UNPRIVILEGED_BYTES < len(self._data) <= _CONVENTIONAL_BYTES:
            raise NotSupported("extended configuration space is not accessible (no MMCONFIG)")
        offset = _CONVENTIONAL_BYTES
        seen = set()
        while offset:
            if offset in seen:
                raise ValueError("the extended capability list of the device goes in circles")
            seen.add(offset)
            low, high = self._word(offset), self._word(offset + 2)
            if low == 0xFFFF and high == 0xFFFF:
                raise ValueError("extended configuration space reads all 0xff")
            if low or high:
                yield low, offset
            offset = (high >> 4) & 0xFFC

    def _word(self, offset: int) -> int:
        if offset + 2 > len(self._data):
            if len(self._data) <= _UNPRIVILEGED_BYTES:
                raise PermissionError(f"only {len(self._data)} bytes of configuration space are readable")
            raise ValueError(f"configuration space ends at {len(self._data)}, before register {offset:#x}")
        (value,) = struct.unpack_from("<H", self._data, offset)
        return int(value)


def _speed(code: int, where: str) -> float:
    if code not in _SPEEDS_GTS:
        raise ValueError(f"{where} names no known speed (code {code}): is the link down?")
    return _SPEEDS_GTS[code]


def _names(bits: int, names: Sequence[str]) -> List[str]:
    return [name for position, name in enumerate(names) if bits & (1 << position)]
