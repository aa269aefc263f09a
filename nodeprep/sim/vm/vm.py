"""One virtual machine of a rack, as a test or an operator handles it."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

from nodeprep.sim.vm import aer, processes
from nodeprep.sim.vm.bmc import ipmi
from nodeprep.sim.vm.identity import USER
from nodeprep.sim.vm.layout import Layout, Machine, read_machine
from nodeprep.sim.vm.programs import VmError, program
from nodeprep.sim.vm.qmp import Qmp

# ssh's own exit status when the connection failed.
_NO_CONNECTION = 255
_CONNECT_S = 10
_STEP_S = 0.5
_POWER_ACTIONS = ("on", "off", "cycle", "reset", "soft", "status")


class Vm:
    """A machine.

    Args:
        rack: Folder of the rack.
        name: Its name in the inventory.

    Attributes:
        layout: Its files.
        machine: Its hardware and ports.
    """

    def __init__(self, rack: Path, name: str) -> None:
        self.rack = rack
        self.name = name
        self.layout = Layout(rack / name)
        self.machine: Machine = read_machine(self.layout)

    def ssh_command(self, *, user: str = "root") -> list[str]:
        """The ssh command without the remote words; host keys are checked."""
        options = (
            "BatchMode=yes",
            "StrictHostKeyChecking=yes",
            f"UserKnownHostsFile={self.rack / 'known_hosts'}",
            "GlobalKnownHostsFile=/dev/null",
            f"ConnectTimeout={_CONNECT_S}",
            "ServerAliveInterval=15",
            "LogLevel=ERROR",
        )
        words = [program("ssh"), "-F", "none", "-i", str(self.rack / "id"), "-p", str(self.machine.ssh_port)]
        for option in options:
            words += ["-o", option]
        return [*words, f"{user}@127.0.0.1"]

    def ssh(self, command: str, *, user: str = "root", timeout_s: float = 120) -> str:
        """Run a shell command in the machine and return its standard output.

        Raises:
            VmError: It failed, or the machine cannot be reached.
        """
        done = self.ssh_result(command, user=user, timeout_s=timeout_s)
        if done.returncode != 0:
            said = (done.stderr.strip() or done.stdout.strip())[-2000:]
            raise VmError(f"{self.name}: exit status {done.returncode} of {command!r}: {said}")
        return done.stdout

    def ssh_result(
        self, command: str, *, user: str = "root", timeout_s: float = 120
    ) -> subprocess.CompletedProcess[str]:
        """The same without judging the exit status; 255 when the machine cannot be reached.

        Raises:
            VmError: No end within `timeout_s` seconds.
        """
        try:
            return subprocess.run(
                [*self.ssh_command(user=user), command],
                timeout=timeout_s,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise VmError(f"{self.name}: {command!r} did not end within {timeout_s:.0f} s") from None

    def boot_id(self) -> str:
        """The kernel's id of the present boot.

        Raises:
            VmError: The machine cannot be reached.
        """
        return self.ssh("cat /proc/sys/kernel/random/boot_id", timeout_s=60).strip()

    def wait_ssh(self, *, not_boot_id: str = "", timeout_s: float = 400) -> str:
        """Wait until ssh works, and return the boot id.

        Args:
            not_boot_id: The boot that must be over.

        Raises:
            VmError: It did not come up; the message carries the end of the console.
        """
        deadline = time.monotonic() + timeout_s
        problem = "no attempt"
        while time.monotonic() < deadline:
            try:
                found = self.boot_id()
            except VmError as error:
                problem = str(error)
            else:
                if found != not_boot_id:
                    return found
                problem = f"still the boot {found}"
            time.sleep(_STEP_S)
        raise VmError(
            f"{self.name} was not up after {timeout_s:.0f} s ({problem}); console:\n{self.console_tail()}"
        )

    def console_tail(self, lines: int = 40) -> str:
        """The end of what the serial console said, over all boots."""
        try:
            text = self.layout.console.read_text(errors="replace")
        except OSError:
            return ""
        return "\n".join(text.replace("\r", "").splitlines()[-lines:])

    def hmp(self, command: str) -> str:
        """Run a command of QEMU's human monitor.

        Raises:
            VmError: The machine is off.
        """
        with Qmp(self.layout.qmp) as qmp:
            return qmp.hmp(command)

    def inject_aer(self, device: str, error: str) -> None:
        """Let a device report a PCIe error.

        Args:
            device: QEMU id: gpu0, port1, switch2, switch2-0, nic3.
            error: Name as the kernel prints it (BadTLP, CmpltTO, DLP) or as QEMU spells it.

        Raises:
            VmError: QEMU knows no such device or error, or the machine is off.
        """
        said = self.hmp(f"pcie_aer_inject_error {device} {aer.qemu_name(error)}").strip()
        if not said.startswith("OK"):
            raise VmError(f"{self.name}: {said or 'QEMU said nothing'}")

    def power(self, action: str) -> str:
        """Press the BMC's power button through IPMI: on, off, cycle, reset, soft, status.

        Raises:
            VmError: The BMC refused or is silent.
        """
        if action not in _POWER_ACTIONS:
            raise ValueError(f"power action {action!r} is none of {', '.join(_POWER_ACTIONS)}")
        return self.bmc("chassis", "power", action).strip()

    def bmc(self, *words: str) -> str:
        """Run ipmitool against the machine's BMC, over the network.

        Raises:
            VmError: It failed.
        """
        return ipmi(self.layout, self.machine, *words)

    def is_on(self) -> bool:
        """Whether the BMC says the power is on.

        Raises:
            VmError: The BMC is silent.
        """
        return self.power("status").endswith("is on")

    def stop(self) -> None:
        """Pull the cords of machine and BMC."""
        processes.stop(self.rack, self.name)

    @property
    def user(self) -> str:
        """The operator's user in the machine; may sudo without a password."""
        return USER
