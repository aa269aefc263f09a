"""Who uses GPUs: the drivers bound below a port, and the processes that have a GPU open."""

from __future__ import annotations

import os
import re
from typing import List, Sequence, Tuple

from .link_pin_bus import children
from .paths import exists, link_target_name, list_folder, read_text, under
from .pci import DEVICES

_DEVICE_FILE = re.compile(r"/dev/(nvidia\d+|vfio/\d+)$")
# It keeps the GPUs open for ever and runs nothing on them.
_HARMLESS = ("nvidia-persiste",)  # comm holds 15 characters


def drivers(root: str, port: str) -> Tuple[str, ...]:
    """Drivers bound to the functions below a port: all of them lose the link while it trains.

    Raises:
        OSError: It cannot be known.
    """
    bound: List[str] = []
    for address in children(root, port):
        link = f"{DEVICES}/{address}/driver"
        if exists(root, link):
            bound.append(link_target_name(root, link))
    return tuple(sorted(set(bound)))


def processes(root: str) -> Sequence[str]:
    """Processes that have a GPU open, as "name (pid)"; nvidia-persistenced does not count.

    Raises:
        OSError: /proc does not show all processes' files.
    """
    users = []
    for pid in list_folder(root, "/proc"):
        if pid.isdigit() and _has_gpu(root, pid):
            name = read_text(root, f"/proc/{pid}/comm") if exists(root, f"/proc/{pid}/comm") else "?"
            if name not in _HARMLESS:
                users.append(f"{name} ({pid})")
    return users


def _has_gpu(root: str, pid: str) -> bool:
    folder = f"/proc/{pid}/fd"
    try:
        names = list_folder(root, folder)
    except (FileNotFoundError, ProcessLookupError):
        return False  # it ended while we looked
    for name in names:
        try:
            target = os.readlink(under(root, f"{folder}/{name}"))
        except (FileNotFoundError, ProcessLookupError):
            continue
        if _DEVICE_FILE.search(target):
            return True
    return False
