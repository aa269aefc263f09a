"""A rack of virtual machines: made, switched on, found again, and taken down."""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from nodeprep.errors import UsageError
from nodeprep.sim.certificates import write_certificates
from nodeprep.sim.vm import bios, processes, warm
from nodeprep.sim.vm.bmc import bmc_command, ipmi, write_bmc
from nodeprep.sim.vm.hardware import Hardware
from nodeprep.sim.vm.identity import copy_user_key, give_identity
from nodeprep.sim.vm.image import image
from nodeprep.sim.vm.inventory import write_inventory
from nodeprep.sim.vm.layout import Layout, Machine
from nodeprep.sim.vm.ports import free_ports
from nodeprep.sim.vm.programs import VmError, program, run
from nodeprep.sim.vm.qemu import qemu
from nodeprep.sim.vm.vm import Vm

_STATE = "rack.json"
_PORTS_A_MACHINE = 4
_BMC_S = 30.0
_NEEDED = ("ipmi_sim", "ipmitool", "qemu-img", "qemu-io", "qemu-system-x86_64", "ssh", "ssh-keygen")
# A Unix socket's path has 107 bytes at most.
_LONGEST_PATH = 80


class Rack:
    """Virtual machines with their BMCs, in one folder.

    Args:
        folder: Folder of the rack; must hold one.

    Raises:
        UsageError: There is no rack.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()
        try:
            names = json.loads((self.folder / _STATE).read_text())["machines"]
        except (OSError, ValueError, KeyError):
            raise UsageError(f"{self.folder} holds no virtual rack", hint="make one with `up`") from None
        self.machines = tuple(Vm(self.folder, name) for name in names)

    @property
    def inventory(self) -> Path:
        """The Ansible inventory."""
        return self.folder / "inventory.yml"

    def vm(self, name: str) -> Vm:
        """A machine by name.

        Raises:
            UsageError: The rack has none of that name.
        """
        for found in self.machines:
            if found.name == name:
                return found
        raise UsageError(f"the rack has no {name}; it has {', '.join(vm.name for vm in self.machines)}")

    def start(self, say: Callable[[str], None], *, power: bool = True) -> None:
        """Plug in the BMCs and switch the machines on; does not wait for them.

        Args:
            power: False leaves the machines off.

        Raises:
            VmError: A BMC does not answer.
        """
        for vm in self.machines:
            processes.start(bmc_command(vm.layout), self.folder, vm.name, vm.layout.bmc_log)
            web = [sys.executable, "-m", "nodeprep.sim.vm.redfish", str(vm.layout.folder)]
            processes.start(web, self.folder, vm.name, vm.layout.redfish_log)
        for vm in self.machines:
            _wait_for_bmc(vm)
            if power:
                vm.power("on")
                say(f"{vm.name}: powered on")

    def wait(self, say: Callable[[str], None], timeout_s: float = 600) -> None:
        """Wait until ssh works on every machine.

        Raises:
            VmError: One did not come up.
        """
        started = time.monotonic()
        for vm in self.machines:
            vm.wait_ssh(timeout_s=timeout_s)
            if vm.layout.woken_mark.exists():
                warm.wake(vm)
            say(f"{vm.name}: up after {time.monotonic() - started:.0f} s")

    def keep_warm(self, say: Callable[[str], None]) -> None:
        """Keep machines that the cache does not have yet for warm starts; they must be up, and fresh.

        Raises:
            VmError: A snapshot could not be taken.
        """
        for vm in self.machines:
            if not vm.layout.woken_mark.exists() and warm.keep(vm):
                say(f"{vm.name}: kept for warm starts")

    def down(self) -> int:
        """End every process of the rack; returns how many there were. The files stay.

        Raises:
            VmError: Some would not end.
        """
        return processes.stop(self.folder)

    def remove(self) -> None:
        """Take the rack down and remove its files."""
        self.down()
        shutil.rmtree(self.folder)


def make_rack(
    folder: Path, hardware: Sequence[Hardware], say: Callable[[str], None], *, warm_start: bool = False
) -> Rack:
    """Make a rack of machines that are switched off; node1, node2 and so on.

    Args:
        folder: Must not exist, or be empty.
        hardware: One for each machine.
        warm_start: Machines that the cache has a snapshot of continue from it instead of booting.

    Raises:
        UsageError: The folder is taken, or a program is missing.
        VmError: A step failed.
    """
    folder = folder.absolute()
    for name in _NEEDED:
        program(name)
    if len(str(folder)) > _LONGEST_PATH:
        raise UsageError(
            f"{folder} is too long a path for the sockets in it", hint=f"at most {_LONGEST_PATH} bytes"
        )
    if folder.exists() and any(folder.iterdir()):
        raise UsageError(f"{folder} is not empty", hint="`down --remove` removes an old rack")
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)
    # From here on `down --remove` knows the folder for a rack's, should this process be killed.
    _write_state(folder, ())
    try:
        return _fill(folder, hardware, say, warm_start=warm_start)
    except BaseException:
        shutil.rmtree(folder)
        raise


def _fill(
    folder: Path, hardware: Sequence[Hardware], say: Callable[[str], None], *, warm_start: bool
) -> Rack:
    built = image(say)
    emulator = qemu(say)
    write_certificates(folder)
    user_key = copy_user_key(folder)
    names = [f"node{number}" for number in range(1, len(hardware) + 1)]
    ports = iter(free_ports(_PORTS_A_MACHINE * len(names)))
    for name, parts in zip(names, hardware, strict=True):
        machine = Machine(
            name=name,
            hardware=parts,
            image=built.id,
            ssh_port=next(ports),
            ipmi_port=next(ports),
            redfish_port=next(ports),
            vm_port=next(ports),
            qemu=emulator.words,
            qemu_environment=emulator.environment,
        )
        layout = Layout(folder / name)
        layout.folder.mkdir(mode=0o700)
        machine.write(layout)
        write_bmc(layout, machine)
        bios.Bios(layout.folder).set_current(bios.defaults(len(parts.slots)))
        if not (warm_start and warm.take(layout, machine)):
            disk = built.disk(cloud=parts.cloud)
            run(["qemu-img", "create", "-q", "-f", "qcow2", "-F", "qcow2", "-b", disk, layout.disk])
            give_identity(layout, name, user_key)
    _write_state(folder, names)
    rack = Rack(folder)
    write_inventory(folder, rack.machines)
    return rack


def _write_state(folder: Path, machines: Sequence[str]) -> None:
    new = folder / f"{_STATE}.new"
    new.write_text(json.dumps({"machines": list(machines)}) + "\n")
    new.replace(folder / _STATE)


def _wait_for_bmc(vm: Vm) -> None:
    deadline = time.monotonic() + _BMC_S
    while True:
        try:
            ipmi(vm.layout, vm.machine, "chassis", "power", "status", timeout_s=5)
        except VmError as error:
            if time.monotonic() > deadline:
                raise VmError(f"the BMC of {vm.name} does not answer: {error}") from None
            time.sleep(0.1)
        else:
            return
