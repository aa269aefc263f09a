"""This boot: its id, age, kernel release and command line."""

from __future__ import annotations

from typing import Any, Dict, List

from .paths import read_text
from .reading import attempt

FIELDS = ("boot_id", "uptime_s", "kernel_release", "cmdline")


def collect(root: str) -> Dict[str, Any]:
    """The "boot" part of the facts."""
    return {
        "boot_id": attempt(boot_id, root),
        "uptime_s": attempt(uptime_s, root),
        "kernel_release": attempt(kernel_release, root),
        "cmdline": attempt(read_text, root, "/proc/cmdline"),
    }


def boot_id(root: str) -> str:
    """The kernel's random id of this boot.

    Raises:
        OSError: /proc does not have it.
        ValueError: It is empty.
    """
    text = read_text(root, "/proc/sys/kernel/random/boot_id")
    if not text:
        raise ValueError("/proc/sys/kernel/random/boot_id is empty")
    return text


def uptime_s(root: str) -> float:
    """Seconds since boot."""
    return float(read_text(root, "/proc/uptime").split()[0])


def kernel_release(root: str) -> str:
    """As `uname -r` prints it."""
    return read_text(root, "/proc/sys/kernel/osrelease")


def hostname(root: str) -> str:
    """The node's own name for itself; "" when it does not say."""
    try:
        return read_text(root, "/proc/sys/kernel/hostname")
    except OSError:
        return ""


def kernel_arguments(cmdline: str) -> List[str]:
    """The arguments that the kernel takes; those after a lone `--` belong to init."""
    arguments = cmdline.split()
    return arguments[: arguments.index("--")] if "--" in arguments else arguments
