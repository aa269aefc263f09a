"""Whether there is room for what a boot loader writes: half a grub.cfg strands the node."""

from __future__ import annotations

import os

from .boot_loaders import Refusal
from .paths import exists, under

# A trial entry, a grub.cfg written beside the old one, an environment block: less than 200 KiB, and some
# 10 KiB more for each kernel. On a full /boot grub-mkconfig leaves half a grub.cfg.
MIN_FREE_BYTES = 4 << 20

_FOLDERS = ("/boot", "/boot/efi", "/efi")


def refuse_full(root: str) -> None:
    """Refuses to write where there is no room.

    Raises:
        Refusal: Says where.
        OSError: It cannot be known.
    """
    for folder in _FOLDERS:
        if exists(root, folder):
            _refuse_full(root, folder)


def _refuse_full(root: str, folder: str) -> None:
    space = os.statvfs(under(root, folder))
    free = space.f_bavail * space.f_frsize
    # vfat has no inodes and says 0 of 0.
    if free < MIN_FREE_BYTES or (space.f_files and not space.f_favail):
        raise Refusal(
            f"nothing was changed: {folder} has {free // 1024} KiB free and {space.f_favail} inodes",
            f"free {MIN_FREE_BYTES // 1024} KiB there; old kernels are the usual reason",
        )
