"""Link registers of PCI functions, read and written through sysfs.

Source: PCI Express Base Specification 6.0, sections 7.5.3.6 to 7.5.3.8 and 7.5.3.18 to 7.5.3.20.
"""

from __future__ import annotations

import errno
import os
import struct
from typing import Optional, Tuple

from .config_space import ConfigSpace
from .paths import is_real, list_folder, read_bytes, under
from .pci import DEVICES
from .pci_address import addresses_in
from .reading import NotSupported

# Registers of the PCI Express capability, from its beginning.
LNKCAP = 0x0C
LNKCTL = 0x10
LNKSTA = 0x12
LNKCAP2 = 0x2C
LNKCTL2 = 0x30

RETRAIN = 0x0020  # LnkCtl
TRAINING = 0x0800  # LnkSta
ACTIVE = 0x2000  # LnkSta
BANDWIDTH_CHANGED = 0x4000  # LnkSta: Link Bandwidth Management Status, cleared by writing 1
TARGET = 0x000F  # LnkCtl2
_SPEED = 0x000F
_REPORTS_ACTIVE = 0x0010  # upper half of LnkCap
_READ_BYTES = 256

LOCKDOWN = "/sys/kernel/security/lockdown"
LOCKDOWN_HINT = (
    "kernel lockdown (it comes with secure boot) forbids programs to write PCI configuration space: pin the "
    "generation in the BIOS setup, or switch secure boot off"
)


class WriteForbidden(Exception):
    """The kernel does not let configuration space be written; .hint says what to do."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


class LinkSpace(ConfigSpace):
    """Configuration space of one end of a link. Generations are the register's codes: 1 is 2.5 GT/s.

    Methods raise as those of ConfigSpace do.
    """

    def pcie_offset(self) -> int:
        """Where the PCI Express capability begins."""
        for kind, offset in self._capabilities():
            if kind == 0x10:
                return offset
        raise NotSupported("no PCI Express capability: a conventional PCI function")

    def identity(self) -> str:
        """Vendor and device in hex, for example "8086:352a"."""
        self.pcie_offset()  # a function that is gone has none
        return f"{self._word(0x00):04x}:{self._word(0x02):04x}"

    def control(self) -> int:
        """LnkCtl."""
        return self._link(LNKCTL)

    def status(self) -> int:
        """LnkSta."""
        return self._link(LNKSTA)

    def control2(self) -> int:
        """LnkCtl2."""
        if self._pcie(0x02) & 0xF < 2:
            raise NotSupported("capability version 1 has no target link speed")
        return self._link(LNKCTL2)

    def target_gen(self) -> int:
        """Highest generation the port trains to (LnkCtl2)."""
        if not self.control2() & TARGET:
            raise NotSupported("the port implements no target link speed")
        return self.control2() & TARGET

    def gen(self) -> int:
        """Generation the link runs at (LnkSta)."""
        self.sta_speed_gts()  # no known speed: the link is down
        return self.status() & _SPEED

    def generations(self) -> Tuple[int, ...]:
        """Those that this end can do: LnkCap2, and LnkCap where that is not implemented."""
        self.cap_speed_gts()
        highest = self._link(LNKCAP) & _SPEED
        vector = self._link(LNKCAP2) & 0xFE if self._pcie(0x02) & 0xF >= 2 else 0
        if not vector:
            return tuple(range(1, highest + 1))
        return tuple(gen for gen in range(1, highest + 1) if vector & 1 << gen)

    def is_training(self) -> bool:
        """The link trains, or was told to and has not begun."""
        return bool(self.status() & TRAINING)

    def is_active(self) -> Optional[bool]:
        """The data link layer is up; None when the port does not report that."""
        if not self._link(LNKCAP + 2) & _REPORTS_ACTIVE:
            return None
        return bool(self.status() & ACTIVE)


class Bus:
    """The PCI bus of the machine."""

    def __init__(self, root: str) -> None:
        self.root = root

    def read(self, address: str) -> LinkSpace:
        """Configuration space of a function as it is now.

        Raises:
            OSError: There is no such function, or it cannot be read.
        """
        return LinkSpace(read_bytes(self.root, f"{DEVICES}/{address}/config", _READ_BYTES))

    def write(self, address: str, register: int, value: int) -> None:
        """Writes 16 bits of the PCI Express capability.

        Raises:
            OSError, ValueError, NotSupported: The function is gone or is no PCI Express function.
            WriteForbidden: The kernel refuses.
        """
        offset = self.read(address).pcie_offset() + register
        try:
            descriptor = os.open(under(self.root, f"{DEVICES}/{address}/config"), os.O_RDWR)
            try:
                os.pwrite(descriptor, struct.pack("<H", value), offset)
            finally:
                os.close(descriptor)
        except PermissionError as error:
            if error.errno == errno.EPERM:
                raise WriteForbidden(
                    f"{address}: the kernel forbids writing configuration space", LOCKDOWN_HINT
                ) from error
            raise WriteForbidden(
                f"{address}: its configuration space may not be written", "become root"
            ) from error


class SimulatedBus(Bus):
    """Configuration spaces that are plain files: what hardware does by itself is done here.

    A link that is told to train runs afterwards at the highest generation that both ends can do and the
    port's target allows.
    """

    def write(self, address: str, register: int, value: int) -> None:
        """As Bus.write; LnkCtl and LnkSta behave as registers and not as memory."""
        if register == LNKCTL:
            super().write(address, LNKCTL, value & ~RETRAIN)
            if value & RETRAIN:
                self._train(address)
        elif register == LNKSTA:
            status = self.read(address).status()
            super().write(address, LNKSTA, status & ~(value & BANDWIDTH_CHANGED))
        else:
            super().write(address, register, value)

    def _train(self, port: str) -> None:
        ends = [port, *children(self.root, port)]
        common = set.intersection(*(set(self.read(end).generations()) for end in ends))
        gen = max(gen for gen in common if gen <= self.read(port).target_gen())
        for end in ends:
            status = self.read(end).status() & ~_SPEED | gen
            super().write(end, LNKSTA, status | BANDWIDTH_CHANGED if end == port else status)


def open_bus(root: str) -> Bus:
    """The bus of the machine, or of a simulated root."""
    return Bus(root) if is_real(root) else SimulatedBus(root)


def children(root: str, port: str) -> Tuple[str, ...]:
    """Functions directly below a port.

    Raises:
        OSError: The port is not there.
    """
    return tuple(name for name in list_folder(root, f"{DEVICES}/{port}") if addresses_in(name))


def lockdown(root: str) -> str:
    """Mode of kernel lockdown: none, integrity or confidentiality; "" when the kernel does not say."""
    try:
        words = read_bytes(root, LOCKDOWN).decode("utf-8", "replace").split()
    except OSError:
        return ""
    return next((word.strip("[]") for word in words if word.startswith("[")), "")
