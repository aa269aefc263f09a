"""Whole disks with hardware behind them; a lost disk is a sign of a bad boot argument."""

from __future__ import annotations

from typing import List

from .paths import exists, list_folder, read_text

_FOLDER = "/sys/block"


def collect(root: str) -> List[str]:
    """The "disks" part of the facts: kernel names, for example "nvme0n1".

    Loop devices, RAM disks, zram, device mapper and md have no device behind them. Removable media are
    left out, since a BMC's virtual drives come and go; so are the hidden paths below a multipath NVMe disk,
    which is there by its own name.

    Raises:
        OSError: /sys/block cannot be read.
    """
    return [name for name in list_folder(root, _FOLDER) if _is_fixed_disk(root, f"{_FOLDER}/{name}")]


def _is_fixed_disk(root: str, folder: str) -> bool:
    has_device = exists(root, f"{folder}/device")
    return has_device and not _flag(root, f"{folder}/removable") and not _flag(root, f"{folder}/hidden")


def _flag(root: str, path: str) -> bool:
    # "hidden" came with Linux 4.15.
    return exists(root, path) and read_text(root, path) == "1"
