import pytest

from nodeprep.node import storage


def disk(root, name, *, device=True, removable=None, hidden=None):
    folder = root / "sys/block" / name
    folder.mkdir(parents=True)
    if device:
        (folder / "device").mkdir()
    for file, value in (("removable", removable), ("hidden", hidden)):
        if value is not None:
            (folder / file).write_text(f"{value}\n")


def test_only_whole_disks_with_hardware_behind_them(tmp_path):
    for name in ("loop0", "ram0", "zram0", "dm-0", "md0"):
        disk(tmp_path, name, device=False, removable=0)
    disk(tmp_path, "nvme0n1", removable=0, hidden=0)
    disk(tmp_path, "sda", removable=0)
    disk(tmp_path, "vda")
    assert storage.collect(str(tmp_path)) == ["nvme0n1", "sda", "vda"]


def test_virtual_drives_of_a_bmc_come_and_go(tmp_path):
    disk(tmp_path, "sr0", removable=1)
    disk(tmp_path, "sdb", removable=1)
    assert storage.collect(str(tmp_path)) == []


def test_a_multipath_disk_counts_once(tmp_path):
    disk(tmp_path, "nvme0n1", removable=0, hidden=0)
    disk(tmp_path, "nvme0c0n1", removable=0, hidden=1)
    assert storage.collect(str(tmp_path)) == ["nvme0n1"]


def test_without_sysfs_nothing_is_known(tmp_path):
    with pytest.raises(FileNotFoundError):
        storage.collect(str(tmp_path))
