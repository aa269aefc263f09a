"""What this machine needs for containers, and the packages that are in them."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from nodeprep.errors import NodeprepError
from nodeprep.sim.vm import cache, image, recipe
from nodeprep.sim.vm.image import Say

# Program -> Debian package.
NEEDED = {
    "systemd-nspawn": "systemd-container",
    "mmdebstrap": "mmdebstrap",
    "ssh": "openssh-client",
    "ssh-keygen": "openssh-client",
    "tar": "tar",
    "unshare": "util-linux",
}
# A container runs on the host's kernel: no boot loader, no modules.
_LEFT_OUT = (
    "dev/*",
    "boot/*",
    "usr/lib/modules",
    "usr/lib/grub",
    "usr/lib/udev/hwdb.d",
    "var/lib/apt/lists/*",
    "etc/ssh/ssh_host_*",
)
_PROBE_S = 20.0
_UNPACK_S = 600.0


class ContainerError(NodeprepError):
    """Something of a container failed; the message says what, and carries the program's own words."""


def obstacle() -> str:
    """Why no container can run here, "" when one can."""
    if os.geteuid() != 0:
        return "systemd-nspawn needs root: it mounts, and gives the container devices and control groups"
    missing = sorted({package for name, package in NEEDED.items() if shutil.which(name) is None})
    if missing:
        return f"not installed: {', '.join(missing)}"
    try:
        run(["unshare", "--mount", "--pid", "--ipc", "--uts", "--fork", "true"], timeout_s=_PROBE_S)
    except ContainerError as error:
        return f"this machine lets no program make namespaces: {error}"
    return ""


def unpack(tree: Path, say: Say) -> None:
    """Lay the packages of the virtual rack's image out, without kernel and boot loader.

    Raises:
        NodeprepError: They could not be fetched or unpacked.
    """
    packages = cache.entry(f"packages-{recipe.packages_id()}", lambda work: image._fetch_packages(work, say))
    tree.mkdir()
    run(
        [
            *("tar", "-x", "-C", str(tree), "--numeric-owner"),
            *(f"--exclude=./{path}" for path in _LEFT_OUT),
            *("-f", str(packages / "root.tar")),
        ],
        timeout_s=_UNPACK_S,
    )


def run(argv: list[str], *, timeout_s: float = 60) -> str:
    """Run a program to its end and return what it wrote to its standard output.

    Raises:
        ContainerError: It failed or took longer than `timeout_s` seconds.
    """
    try:
        done = subprocess.run(
            argv, timeout=timeout_s, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ContainerError(f"{argv[0]}: {error}") from None
    if done.returncode != 0:
        said = done.stderr.strip() or done.stdout.strip() or f"exit status {done.returncode}"
        raise ContainerError(f"{argv[0]}: {said}")
    return done.stdout
