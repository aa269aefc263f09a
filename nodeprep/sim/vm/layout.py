"""The files of one virtual machine."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from nodeprep.sim.vm.hardware import Hardware, Slot


@dataclass(frozen=True, slots=True)
class Layout:
    """Paths in the folder of one machine. Sockets have short names: a socket's path has 107 bytes at most.

    Attributes:
        folder: Mode 0700.
    """

    folder: Path

    @property
    def disk(self) -> Path:
        """The machine's own disk, an overlay of the image."""
        return self.folder / "disk.qcow2"

    @property
    def console(self) -> Path:
        """Everything the serial console ever said, over all boots."""
        return self.folder / "console.log"

    @property
    def description(self) -> Path:
        """Hardware, ports and QEMU, as JSON."""
        return self.folder / "machine.json"

    @property
    def qmp(self) -> Path:
        """QEMU's machine protocol, for everybody."""
        return self.folder / "qmp"

    @property
    def chassis_qmp(self) -> Path:
        """QEMU's machine protocol, for the chassis."""
        return self.folder / "chassis-qmp"

    @property
    def warm_mark(self) -> Path:
        """While it exists, the next power-on continues from the snapshot on the disk."""
        return self.folder / "warm"

    @property
    def woken_mark(self) -> Path:
        """The machine's first start was a warm one."""
        return self.folder / "woken"

    @property
    def host_key(self) -> Path:
        """The machine's ssh host key; its public half is beside it."""
        return self.folder / "host_key"

    @property
    def power_log(self) -> Path:
        """One line a power-on, reset with new BIOS settings, or power-off."""
        return self.folder / "power.log"

    @property
    def bmc(self) -> Path:
        """Files of the BMC."""
        return self.folder / "bmc"

    @property
    def bmc_log(self) -> Path:
        """What ipmi_sim and QEMU say."""
        return self.folder / "bmc.log"

    @property
    def password(self) -> Path:
        """The BMC's password, mode 0600."""
        return self.folder / "bmc-password"

    @property
    def redfish_log(self) -> Path:
        """Requests to the Redfish service."""
        return self.folder / "redfish.log"


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What a machine is: written once, when the rack is made.

    Attributes:
        image: Id of the image its disk is an overlay of.
        ssh_port, ipmi_port, redfish_port, vm_port: Ports of 127.0.0.1; the last joins QEMU and its BMC.
        qemu: QEMU's program with its own words.
        qemu_environment: What it needs in its environment.
    """

    name: str
    hardware: Hardware
    image: str
    ssh_port: int
    ipmi_port: int
    redfish_port: int
    vm_port: int
    qemu: tuple[str, ...]
    qemu_environment: dict[str, str]

    def write(self, layout: Layout) -> None:
        """Keep it in the machine's folder."""
        layout.description.write_text(json.dumps(asdict(self), indent=2) + "\n")


def read_machine(layout: Layout) -> Machine:
    """The machine whose folder this is.

    Raises:
        OSError: It has no description.
    """
    found: dict[str, Any] = json.loads(layout.description.read_text())
    hardware = found.pop("hardware")
    slots = tuple(Slot(**slot) for slot in hardware.pop("slots"))
    qemu = tuple(found.pop("qemu"))
    return Machine(hardware=Hardware(slots=slots, **hardware), qemu=qemu, **found)
