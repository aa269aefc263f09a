"""The QEMU command of a machine."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from nodeprep.sim.vm import hardware
from nodeprep.sim.vm.layout import Layout, read_machine

SNAPSHOT = "warm"


def command(layout: Layout, settings: Mapping[str, str]) -> tuple[list[str], dict[str, str]]:
    """QEMU's words and environment for a power-on with these BIOS settings.

    A warm start is taken once: whatever powers the machine on later is a real boot.
    """
    machine = read_machine(layout)
    mac = _mac(machine.name)
    words = [
        *machine.qemu,
        *("-name", machine.name, "-accel", "tcg,thread=multi,tb-size=256"),
        *hardware.words(machine.hardware, settings),
        *("-nodefaults", "-vga", "none", "-display", "none"),
        *("-chardev", f"file,id=console,path={layout.console},append=on", "-serial", "chardev:console"),
        *("-qmp", f"unix:{layout.qmp},server=on,wait=off"),
        *("-qmp", f"unix:{layout.chassis_qmp},server=on,wait=off"),
        *("-drive", f"file={layout.disk},if=none,id=disk,format=qcow2"),
        *("-device", "virtio-blk-pci,drive=disk,bus=pcie.0,addr=0x3"),
        *("-netdev", f"user,id=net0,hostfwd=tcp:127.0.0.1:{machine.ssh_port}-:22"),
        *("-device", f"virtio-net-pci,netdev=net0,bus=pcie.0,addr=0x2,romfile=,mac={mac}"),
        *("-chardev", f"socket,id=bmc,host=127.0.0.1,port={machine.vm_port},reconnect-ms=1000"),
        *("-device", "ipmi-bmc-extern,id=bmc0,chardev=bmc", "-device", "isa-ipmi-kcs,bmc=bmc0,irq=5"),
        *("-uuid", _uuid(machine.name)),
        *("-smbios", f"type=1,manufacturer=QEMU,product=vm,serial={machine.name}"),
    ]
    if layout.warm_mark.exists():
        layout.warm_mark.unlink()
        words += ["-loadvm", SNAPSHOT]
    return words, machine.qemu_environment


def _mac(name: str) -> str:
    digest = hashlib.sha256(name.encode()).hexdigest()
    return "52:54:00:" + ":".join(digest[index : index + 2] for index in (0, 2, 4))


def _uuid(name: str) -> str:
    digest = hashlib.sha256(name.encode()).hexdigest()
    return "-".join((digest[:8], digest[8:12], digest[12:16], digest[16:20], digest[20:32]))
