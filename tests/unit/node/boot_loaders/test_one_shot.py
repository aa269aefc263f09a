"""Where GRUB can clear its environment block, and where a one-shot choice would stick."""

from __future__ import annotations

from pathlib import Path

import pytest

from nodeprep.node.boot_loaders import _grubenv, _one_shot

ENV = "/boot/grub/grubenv"


def node(root: Path, *mounts: str, devices: dict[str, str] | None = None) -> str:
    (root / "proc/self").mkdir(parents=True, exist_ok=True)
    (root / "proc/self/mountinfo").write_text("".join(f"{mount}\n" for mount in mounts))
    for number, target in (devices or {}).items():
        link = root / "sys/dev/block" / number
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(f"../../devices/{target}")
    return str(root)


def mount(device: str, point: str, file_system: str) -> str:
    return f"27 1 {device} / {point} rw,relatime shared:1 - {file_system} /dev/x rw"


@pytest.mark.parametrize("file_system", ["ext2", "ext3", "ext4", "xfs", "vfat"])
@pytest.mark.parametrize("name", ["sda2", "vda1", "nvme0n1p2", "nvme10n1", "xvda1", "mmcblk0p1", "pmem0"])
def test_plain_disks(tmp_path: Path, file_system: str, name: str) -> None:
    root = node(tmp_path, mount("8:2", "/", file_system), devices={"8:2": f"pci0000:00/block/x/{name}"})
    assert _one_shot.obstacle(root, ENV) == ""


@pytest.mark.parametrize("file_system", ["btrfs", "zfs", "f2fs", "overlay", "tmpfs", "nfs4", "autofs"])
def test_file_systems_that_grub_cannot_write(tmp_path: Path, file_system: str) -> None:
    root = node(tmp_path, mount("0:33", "/", file_system))
    assert f"{ENV}: it lies on {file_system}, and " in _one_shot.obstacle(root, ENV)


@pytest.mark.parametrize(
    ("uuid", "words"),
    [
        ("LVM-abc", "the volume manager LVM (/dev/dm-0)"),
        ("CRYPT-LUKS2-abc-root", "an encrypted device (/dev/dm-0)"),
        ("DMRAID-isw_x", "a software RAID (/dev/dm-0)"),
        ("something", "the device mapper (/dev/dm-0)"),
        ("", "the device mapper (/dev/dm-0)"),
    ],
)
def test_the_device_mapper(tmp_path: Path, uuid: str, words: str) -> None:
    root = node(tmp_path, mount("254:0", "/", "ext4"), devices={"254:0": "virtual/block/dm-0"})
    place = tmp_path / "sys/devices/virtual/block/dm-0/dm"
    place.mkdir(parents=True)
    (place / "uuid").write_text(uuid + "\n")
    assert words in _one_shot.obstacle(root, ENV)


@pytest.mark.parametrize("uuid", ["mpath-3600a", "part2-mpath-3600a"])
def test_multipath_is_a_plain_disk_to_grub(tmp_path: Path, uuid: str) -> None:
    root = node(tmp_path, mount("254:0", "/", "ext4"), devices={"254:0": "virtual/block/dm-0"})
    place = tmp_path / "sys/devices/virtual/block/dm-0/dm"
    place.mkdir(parents=True)
    (place / "uuid").write_text(uuid + "\n")
    assert _one_shot.obstacle(root, ENV) == ""


def test_a_software_raid(tmp_path: Path) -> None:
    root = node(tmp_path, mount("9:0", "/boot", "ext4"), devices={"9:0": "virtual/block/md0"})
    (tmp_path / "sys/devices/virtual/block/md0/md").mkdir(parents=True)
    assert "a software RAID (/dev/md0)" in _one_shot.obstacle(root, ENV)


@pytest.mark.parametrize("name", ["loop0", "nbd0", "rbd0", "bcache0", "zram0", "drbd0"])
def test_what_is_not_known_to_be_a_disk(tmp_path: Path, name: str) -> None:
    root = node(tmp_path, mount("7:0", "/", "ext4"), devices={"7:0": f"virtual/block/{name}"})
    assert "not known to be a plain disk" in _one_shot.obstacle(root, ENV)


def test_the_mount_that_holds_the_block_counts(tmp_path: Path) -> None:
    root = node(
        tmp_path,
        mount("0:33", "/", "btrfs"),
        mount("0:40", "/boot", "autofs"),
        mount("8:1", "/boot", "ext4"),
        mount("0:41", "/boot/gr", "tmpfs"),
        mount("0:42", "/boot\\040x", "tmpfs"),
        devices={"8:1": "pci/block/sda/sda1"},
    )
    assert _one_shot.obstacle(root, ENV) == ""
    assert "btrfs" in _one_shot.obstacle(root, "/grub/grubenv")
    assert "tmpfs" in _one_shot.obstacle(root, "/boot x/grubenv")


def test_a_link_is_followed(tmp_path: Path) -> None:
    root = node(
        tmp_path,
        mount("8:2", "/", "ext4"),
        mount("0:9", "/boot/efi", "btrfs"),
        devices={"8:2": "pci/block/sda/sda2"},
    )
    (tmp_path / "boot/grub").mkdir(parents=True)
    (tmp_path / "boot/grub/grubenv").symlink_to("../efi/grubenv")
    assert "/boot/efi/grubenv: it lies on btrfs" in _one_shot.obstacle(root, ENV)


def test_what_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        _one_shot.obstacle(str(tmp_path), ENV)
    with pytest.raises(ValueError, match="cannot be understood"):
        _one_shot.obstacle(node(tmp_path, "nonsense"), ENV)
    with pytest.raises(ValueError, match="does not say where"):
        _one_shot.obstacle(node(tmp_path, mount("8:1", "/srv", "ext4")), ENV)
    with pytest.raises(FileNotFoundError):
        _one_shot.obstacle(node(tmp_path, mount("8:1", "/", "ext4")), ENV)


def test_an_environment_block(tmp_path: Path) -> None:
    path = tmp_path / "boot/grub/grubenv"
    path.parent.mkdir(parents=True)
    assert _grubenv.read(str(tmp_path), ENV) == {}
    path.write_bytes(b"# GRUB Environment Block\na=b=c\nempty=\nx=1\\\\2\\\n3\n" + b"#" * 900)
    assert _grubenv.read(str(tmp_path), ENV) == {"a": "b=c", "empty": "", "x": "1\\2\n3"}
    path.write_bytes(b"")
    with pytest.raises(ValueError, match="not a GRUB environment block"):
        _grubenv.read(str(tmp_path), ENV)
