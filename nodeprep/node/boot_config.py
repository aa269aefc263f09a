"""What the next plain boot would be, by the boot loader's own files; not what this boot was given."""

from __future__ import annotations

import os
from typing import Any, Dict

from . import trial_state
from .boot_loaders import BootLoader, Entry, Refusal, find
from .paths import under
from .reading import NotSupported, attempt

FIELDS = ("id", "default_kernel", "cmdline", "one_shot", "boot_free_bytes", "trial")

_BOOT = "/boot"


def collect(root: str) -> Dict[str, Any]:
    """The "boot_loader" part of the facts."""
    return {
        "id": attempt(loader_id, root),
        "default_kernel": attempt(default_kernel, root),
        "cmdline": attempt(lambda: _default(root).cmdline),
        "one_shot": attempt(one_shot, root),
        "boot_free_bytes": attempt(boot_free_bytes, root),
        "trial": attempt(trial_state.observe, root),
    }


def loader_id(root: str) -> str:
    """Name of the back end.

    Raises:
        NotSupported: The boot loader is known, but its arguments are not nodeprep's to change.
        OSError, ValueError: It cannot be known, or no known one is there.
    """
    loader = _loader(root)
    refusal = loader.refusal()
    if refusal is not None:
        raise NotSupported(_words(refusal))
    return loader.id


def default_kernel(root: str) -> str:
    """Release of the kernel that the next plain boot would start.

    Raises:
        NotSupported: As `loader_id`.
        OSError, ValueError: It cannot be told.
    """
    entry = _default(root)
    if not entry.kernel_release:
        raise ValueError(f"the kernel's file name in {entry.source} does not tell its release")
    return entry.kernel_release


def one_shot(root: str) -> bool:
    """True when an entry can be booted once.

    Raises:
        NotSupported: It cannot be trusted; says why.
        OSError, ValueError: It cannot be known.
    """
    obstacle = _loader(root).one_shot_obstacle()
    if obstacle:
        raise NotSupported(obstacle)
    return True


def boot_free_bytes(root: str) -> int:
    """Free bytes for root on the file system of /boot.

    Raises:
        OSError: There is no /boot.
    """
    state = os.statvfs(under(root, _BOOT))
    return state.f_bfree * state.f_frsize


def _loader(root: str) -> BootLoader:
    try:
        return find(root)
    except Refusal as refusal:
        raise ValueError(_words(refusal)) from refusal


def _default(root: str) -> Entry:
    try:
        return _loader(root).default_entry()
    except Refusal as refusal:
        raise NotSupported(_words(refusal)) from refusal


def _words(refusal: Refusal) -> str:
    return f"{refusal}; {refusal.hint}" if refusal.hint else str(refusal)
