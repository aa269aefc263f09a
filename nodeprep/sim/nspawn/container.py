"""A container that boots systemd: made, started, found again, and removed."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import yaml

from nodeprep.errors import UsageError
from nodeprep.sim.nspawn import driver
from nodeprep.sim.nspawn.host import ContainerError, obstacle, run, unpack
from nodeprep.sim.vm import processes
from nodeprep.sim.vm.image import Say
from nodeprep.sim.vm.ports import free_ports

HOST = "node1"

_STATE = "container.json"
# A container that reboots ends nspawn with this status; systemd-nspawn@.service starts it again too.
# Source: systemd-nspawn(1), --keep-unit; systemd.exec(5), 133.
_UNTIL_OFF = 'until "$@"; [ $? -ne 133 ]; do :; done'
_SSHD = """\
Port {port}
ListenAddress 127.0.0.1
UseDNS no
PermitRootLogin prohibit-password
PasswordAuthentication no
"""
_HEAD = "# A container of nodeprep: a real systemd, the kernel of this machine, a simulated NVIDIA driver.\n"
_STOP_S = 15.0


class Container:
    """A container in a folder.

    Args:
        folder: Folder of the container; must hold one.

    Raises:
        UsageError: There is none.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()
        try:
            state: dict[str, Any] = json.loads((self.folder / _STATE).read_text())
        except (OSError, ValueError):
            raise UsageError(f"{self.folder} holds no container", hint="make one with `up`") from None
        self.name: str = state["name"]
        self.port: int = state["port"]

    @property
    def tree(self) -> Path:
        """The container's root."""
        return self.folder / "tree"

    @property
    def console(self) -> Path:
        """What the container and systemd-nspawn say, over all boots."""
        return self.folder / "console.log"

    @property
    def inventory(self) -> Path:
        """The Ansible inventory."""
        return self.folder / "inventory.yml"

    def start(self) -> None:
        """Boot it; does not wait for it. It may reboot by itself as often as it likes."""
        command = [
            *("systemd-nspawn", "--quiet", "--boot", f"--directory={self.tree}"),
            *(f"--machine={self.name}", f"--hostname={HOST}", "--console=pipe"),
            # No systemd and no machined of the host are asked: CI often has neither.
            *("--register=no", "--keep-unit", "--resolv-conf=off", "--timezone=off"),
        ]
        processes.start(["sh", "-c", _UNTIL_OFF, "sh", *command], self.folder, self.name, self.console)

    def wait(self, timeout_s: float = 60) -> None:
        """Wait until ssh works and systemd has started everything.

        Raises:
            ContainerError: It did not come up.
        """
        deadline = time.monotonic() + timeout_s
        while (done := self.ssh_result("systemctl is-system-running --wait")).returncode == 255:
            if time.monotonic() > deadline:
                said = self.console.read_text(errors="replace")[-1000:]
                raise ContainerError(f"ssh does not work after {timeout_s:.0f} s: {done.stderr}{said}")
            time.sleep(0.2)
        if done.stdout.strip() != "running":
            raise ContainerError(
                f"systemd says {done.stdout.strip()}: {self.ssh('systemctl --failed --plain')}"
            )

    def ssh_command(self) -> list[str]:
        """How to run ssh; the command goes behind it."""
        options = ("BatchMode=yes", "ConnectTimeout=5", f"UserKnownHostsFile={self.folder}/known_hosts")
        return [
            *("ssh", "-q", "-i", str(self.folder / "id"), "-p", str(self.port)),
            *(word for option in options for word in ("-o", option)),
            "root@127.0.0.1",
        ]

    def ssh_result(self, command: str) -> subprocess.CompletedProcess[str]:
        """Run a command in it; exit status 255 when ssh does not work."""
        words = [*self.ssh_command(), command]
        return subprocess.run(
            words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False
        )

    def ssh(self, command: str) -> str:
        """What a command in it prints.

        Raises:
            ContainerError: It failed.
        """
        done = self.ssh_result(command)
        if done.returncode:
            raise ContainerError(f"{command}: exit status {done.returncode}: {done.stderr.strip()}")
        return done.stdout

    def stop(self) -> int:
        """End it, without ceremony; returns how many processes there were. The files stay.

        Raises:
            ContainerError: Some would not end.
        """
        ended = len(_processes_below(self.tree)) + processes.stop(self.folder)
        deadline = time.monotonic() + _STOP_S
        # The first process of a container ends with systemd-nspawn, and all others with it.
        while left := _processes_below(self.tree):
            if time.monotonic() > deadline:
                raise ContainerError(f"processes {', '.join(map(str, left))} of {self.folder} do not end")
            for pid in left:
                _kill(pid)
            time.sleep(0.05)
        return ended

    def remove(self) -> None:
        """Stop it and remove its files."""
        self.stop()
        shutil.rmtree(self.folder)


def make_container(folder: Path, say: Say, *, gpus: int = 8) -> Container:
    """Make a container that is not running.

    Args:
        folder: Must not exist, or be empty.
        say: Told what is being done.
        gpus: How many simulated GPUs it has.

    Raises:
        UsageError: The folder is taken, or no container can run here.
        ContainerError: A step failed.
    """
    folder = folder.absolute()
    problem = obstacle()
    if problem:
        raise UsageError(f"no container can run here: {problem}")
    if folder.exists() and any(folder.iterdir()):
        raise UsageError(f"{folder} is not empty", hint="`down --remove` removes an old container")
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)
    name = f"{HOST}-{hashlib.sha256(str(folder).encode()).hexdigest()[:8]}"
    (port,) = free_ports(1)
    (folder / _STATE).write_text(json.dumps({"name": name, "port": port}) + "\n")
    container = Container(folder)
    unpack(container.tree, say)
    _give_keys(container)
    ids = driver.install(container.tree, gpus, name)
    container.inventory.write_text(_HEAD + yaml.safe_dump(_inventory(container, ids), sort_keys=False))
    return container


def _give_keys(container: Container) -> None:
    """Its own host key, and the key that opens it."""
    ssh = container.tree / "etc/ssh"
    for path in (container.folder / "id", ssh / "ssh_host_ed25519_key"):
        run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", container.name, "-f", str(path)])
    kind, key = (ssh / "ssh_host_ed25519_key.pub").read_text().split()[:2]
    (container.folder / "known_hosts").write_text(f"[127.0.0.1]:{container.port} {kind} {key}\n")
    (ssh / "sshd_config.d" / "container.conf").write_text(_SSHD.format(port=container.port))
    home = container.tree / "root/.ssh"
    home.mkdir(mode=0o700, exist_ok=True)
    shutil.copy(container.folder / "id.pub", home / "authorized_keys")


def _inventory(container: Container, gpu_ids: list[str]) -> dict[str, Any]:
    host = {
        "ansible_host": "127.0.0.1",
        "ansible_port": container.port,
        "ansible_user": "root",
        "ansible_ssh_private_key_file": str(container.folder / "id"),
        "ansible_ssh_common_args": f"-o UserKnownHostsFile={container.folder}/known_hosts",
        "ansible_python_interpreter": "/usr/bin/python3",
        # With them facts say that they are simulated, as the driver is.
        "nodeprep_gpu_ids": gpu_ids,
    }
    return {"all": {"hosts": {HOST: host}}}


def _processes_below(tree: Path) -> list[int]:
    return [
        int(entry.name)
        for entry in Path("/proc").iterdir()
        if entry.name.isdigit() and _below(int(entry.name), tree)
    ]


def _below(pid: int, tree: Path) -> bool:
    """Whether a process has the tree as its root."""
    try:
        return os.path.samefile(f"/proc/{pid}/root", tree)  # noqa: PTH121 - a link to another namespace
    except OSError:  # another user's, or just ended
        return False


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
