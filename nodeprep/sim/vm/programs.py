"""Programs of this machine that the rack calls, and what to say when one is missing."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from nodeprep.errors import NodeprepError, UsageError

# Program -> Debian package.
_PACKAGES = {
    "sh": "dash",
    "apt-get": "apt",
    "chroot": "coreutils",
    "dpkg": "dpkg",
    "ipmi_sim": "openipmi",
    "ipmitool": "ipmitool",
    "mke2fs": "e2fsprogs",
    "mmdebstrap": "mmdebstrap",
    "qemu-img": "qemu-utils",
    "qemu-io": "qemu-utils",
    # Its libraries serve the backport too.
    "qemu-system-x86_64": "qemu-system-x86",
    "sfdisk": "fdisk",
    "ssh": "openssh-client",
    "ssh-keygen": "openssh-client",
    "tar": "tar",
}
# Of ordinary users' PATH these are not part, and the programs are of use to them all the same.
_SYSTEM_FOLDERS = ("/usr/sbin", "/sbin")
_TAIL_CHARACTERS = 2000


class VmError(NodeprepError):
    """Something of the virtual rack failed; the message says what, and carries the program's own words."""


def program(name: str) -> str:
    """Path of a program.

    Raises:
        UsageError: It is not installed.
    """
    found = _find(name)
    if found is None:
        package = _PACKAGES.get(name, name)
        raise UsageError(f"the virtual rack needs {name}", hint=f"apt-get install {package}")
    return found


def _find(name: str) -> str | None:
    places = (str(Path(folder, name)) for folder in _SYSTEM_FOLDERS if Path(folder, name).exists())
    return shutil.which(name) or next(places, None)


def missing_packages() -> list[str]:
    """Debian packages of the programs that are not installed."""
    return sorted({package for name, package in _PACKAGES.items() if _find(name) is None})


def run(
    argv: Sequence[str | Path],
    *,
    timeout_s: float = 60,
    cwd: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> str:
    """Run a program to its end and return what it wrote to its standard output.

    Args:
        argv: The program by name (see `program`) and its words.
        environment: The whole environment; None means this process's.

    Raises:
        UsageError: The program is not installed.
        VmError: It failed or took longer than `timeout_s` seconds.
    """
    words = [program(str(argv[0])), *map(str, argv[1:])]
    try:
        done = subprocess.run(
            words,
            timeout=timeout_s,
            cwd=cwd,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise VmError(f"{argv[0]} did not end within {timeout_s:.0f} s") from None
    if done.returncode != 0:
        said = (done.stderr.strip() or done.stdout.strip())[-_TAIL_CHARACTERS:]
        raise VmError(f"{argv[0]} failed with exit status {done.returncode}: {said}")
    return done.stdout
