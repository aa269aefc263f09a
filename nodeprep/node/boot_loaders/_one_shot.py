"""Whether GRUB can clear its environment block: where it cannot, a one-shot choice sticks for good.

GRUB writes the blocks of the file straight to the disk. It cannot do that through LVM, a software
RAID, encryption, or on a file system that never overwrites in place.
Source: grub-reboot(8), check_writable() in 00_header of Debian's GRUB, grub-core/commands/loadenv.c
(check_blocklists) of GRUB.
"""

from __future__ import annotations

import os
import re
from typing import List, NamedTuple

from ..paths import exists, read_text, under

# File systems where GRUB finds the blocks of a file and may overwrite them.
_WRITABLE = frozenset({"ext2", "ext3", "ext4", "xfs", "vfat"})
_REASONS = {
    "btrfs": "it never overwrites in place",
    "zfs": "it never overwrites in place",
    "overlay": "it is no file system of a disk",
    "tmpfs": "it is no file system of a disk",
}
# What the firmware shows to GRUB as a disk or a part of one.
_PLAIN_DISK = re.compile(
    r"(sd[a-z]+|vd[a-z]+|xvd[a-z]+|hd[a-z]+|nvme\d+(c\d+)?n\d+|mmcblk\d+|pmem\d+)(p?\d+)?$"
)
_MAPPED = {
    "LVM": "the volume manager LVM",
    "CRYPT": "an encrypted device",
    "DMRAID": "a software RAID",
}


class _Mount(NamedTuple):
    device: str
    point: str
    file_system: str


def obstacle(root: str, path: str) -> str:
    """Why GRUB cannot write a file below /boot, "" when it can.

    Raises:
        OSError: /proc or /sys cannot be read.
        ValueError: What they say cannot be understood.
    """
    real = _resolved(root, path)
    mount = _mount_of(_mounts(root), real)
    if mount.file_system not in _WRITABLE:
        reason = _REASONS.get(mount.file_system, "it is not known to work there")
        return f"GRUB cannot write to {real}: it lies on {mount.file_system}, and {reason}"
    device = _device_obstacle(root, mount.device)
    return f"GRUB cannot write to {real}: it lies on {device}" if device else ""


def _resolved(root: str, path: str) -> str:
    """The file a link stands for: RHEL 8 with UEFI keeps the block on the EFI partition."""
    place = under(root, path)
    if os.path.islink(place):
        target = os.readlink(place)
        return os.path.normpath(os.path.join(os.path.dirname(path), target))
    return path


def _mounts(root: str) -> List[_Mount]:
    found = []
    for line in read_text(root, "/proc/self/mountinfo").splitlines():
        left, dash, right = line.partition(" - ")
        fields, kind = left.split(), right.split()
        if not dash or len(fields) < 5 or not kind:
            raise ValueError(f"/proc/self/mountinfo has a line that cannot be understood: {line}")
        found.append(_Mount(fields[2], _unescaped(fields[4]), kind[0]))
    return found


def _unescaped(text: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match.group(1), 8)), text)


def _mount_of(mounts: List[_Mount], path: str) -> _Mount:
    best = None
    for mount in mounts:
        inside = path == mount.point or path.startswith(mount.point.rstrip("/") + "/")
        # Of two at the same place the later one covers the other.
        if inside and (best is None or len(mount.point) >= len(best.point)):
            best = mount
    if best is None:
        raise ValueError(f"/proc/self/mountinfo does not say where {path} is mounted")
    return best


def _device_obstacle(root: str, device: str) -> str:
    link = under(root, f"/sys/dev/block/{device}")
    name = os.path.basename(os.readlink(link))
    block = f"/sys/dev/block/{device}"
    if exists(root, f"{block}/md"):
        return f"a software RAID (/dev/{name})"
    if exists(root, f"{block}/dm"):
        return _mapper_obstacle(root, block, name)
    if not _PLAIN_DISK.fullmatch(name):
        return f"/dev/{name}, which is not known to be a plain disk"
    return ""


def _mapper_obstacle(root: str, block: str, name: str) -> str:
    uuid = read_text(root, f"{block}/dm/uuid")
    # Multipath: the firmware shows GRUB one of the paths, a plain disk.
    if re.match(r"(part\d+-)?mpath-", uuid):
        return ""
    kind = _MAPPED.get(uuid.partition("-")[0], "the device mapper")
    return f"{kind} (/dev/{name})"
