"""Builds the image of a virtual machine from Debian packages: no loop device, no root mount, no boot.

The file system is filled by `mke2fs -d` from a folder, and GRUB's two first parts are copied in front
of it, which is all that grub-install does on such a disk.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from nodeprep.errors import UsageError
from nodeprep.sim.vm import cache, recipe
from nodeprep.sim.vm.archive import archive
from nodeprep.sim.vm.programs import VmError, program, run

Say = Callable[[str], None]

_SECTOR = 512
_FIRST_SECTOR = 2048
_MIB = 1024 * 1024
_PACKAGES_S = 1800.0
_STEP_S = 900.0


@dataclass(frozen=True, slots=True)
class Image:
    """A built image. Disks of machines are overlays of it, so it never changes: another one has another id.

    Attributes:
        id: Hash of everything in it.
        folder: Where it lies in the cache.
    """

    id: str
    folder: Path

    def disk(self, *, cloud: bool) -> Path:
        """The disk, without or with a cloud image's GRUB drop-in."""
        return self.folder / ("cloud.qcow2" if cloud else "plain.qcow2")

    @property
    def manifest(self) -> str:
        """Installed packages, one "name version" a line."""
        return (self.folder / "packages").read_text()


def image(say: Say, *, again: bool = False) -> Image:
    """The image of the present recipe, built when the cache has none.

    Args:
        say: Told what is being done.
        again: Fetch the packages and build the image anew: newer kernels and security fixes.

    Raises:
        UsageError: A program is missing, or this user may not build.
        VmError: A step failed.
    """
    packages = cache.entry(
        f"packages-{recipe.packages_id()}", lambda work: _fetch_packages(work, say), again=again
    )
    identifier = recipe.image_id((packages / "digest").read_text())
    return Image(
        identifier, cache.entry(f"image-{identifier}", lambda work: _build(packages, identifier, work, say))
    )


def _fetch_packages(work: Path, say: Say) -> None:
    _need_root()
    say(f"installing {len(recipe.PACKAGES)} packages of Debian {recipe.SUITE} and what they need")
    started = time.monotonic()
    run(
        [
            "mmdebstrap",
            "--mode=root",
            "--variant=minbase",
            "--format=tar",
            f"--include={','.join(recipe.PACKAGES)}",
            '--aptopt=Apt::Install-Recommends "false"',
            *(f"--dpkgopt=path-exclude={path}" for path in recipe.PATHS_LEFT_OUT),
            recipe.SUITE,
            work / "root.tar",
            archive(recipe.SUITE),
        ],
        timeout_s=_PACKAGES_S,
    )
    with (work / "root.tar").open("rb") as packed:
        (work / "digest").write_text(hashlib.file_digest(packed, "sha256").hexdigest())
    say(f"packages installed in {time.monotonic() - started:.0f} s")


def _build(packages: Path, identifier: str, work: Path, say: Say) -> None:
    _need_root()
    started = time.monotonic()
    tree = work / "tree"
    say("making the image: initrd, boot loader, disk")
    _lay_out(packages / "root.tar", tree)
    _finish(tree, identifier)
    (work / "packages").write_text(
        run(["chroot", tree, "dpkg-query", "-W", "-f", "${Package} ${Version}\\n"], timeout_s=_STEP_S)
    )
    cloud_grub = tree / "grub-cloud.cfg"
    drop_in = tree / "50-cloudimg-settings.cfg"
    kept = work / "grub-cloud.cfg"
    cloud_grub.rename(kept)
    drop_in.unlink()
    _disk(tree, identifier, work / "plain.qcow2")
    shutil.copyfile(kept, tree / "boot/grub/grub.cfg")
    (tree / "etc/default/grub.d").mkdir(exist_ok=True)
    shutil.copyfile(recipe.CLOUD_DROP_IN, tree / "etc/default/grub.d" / recipe.CLOUD_DROP_IN.name)
    _disk(tree, identifier, work / "cloud.qcow2")
    kept.unlink()
    shutil.rmtree(tree)
    say(f"image made in {time.monotonic() - started:.0f} s")


def _need_root() -> None:
    if os.geteuid() != 0:
        raise UsageError(
            "only root can build the image of the virtual rack", hint="it needs chroot and mknod"
        )


def _lay_out(packed: Path, tree: Path) -> None:
    tree.mkdir()
    run(["tar", "-x", "-C", tree, "--numeric-owner", "--exclude=./dev/*", "-f", packed], timeout_s=_STEP_S)
    for name, minor in (("null", 3), ("zero", 5), ("random", 8), ("urandom", 9)):
        os.mknod(tree / "dev" / name, 0o020666, os.makedev(1, minor))
    shutil.copytree(recipe.FILES, tree, dirs_exist_ok=True)
    shutil.copyfile(recipe.CLOUD_DROP_IN, tree / recipe.CLOUD_DROP_IN.name)


def _finish(tree: Path, identifier: str) -> None:
    script = tree / recipe.FINISH.name
    shutil.copyfile(recipe.FINISH, script)
    environment = {
        "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
        "LC_ALL": "C.UTF-8",
        "UUID": recipe.filesystem_uuid(identifier),
        "DISK_ID": recipe.disk_id(identifier),
    }
    try:
        run(["chroot", tree, "/bin/sh", f"/{script.name}"], timeout_s=_STEP_S, environment=environment)
    finally:
        script.unlink()


def _disk(tree: Path, identifier: str, made: Path) -> None:
    raw = made.with_name("raw")
    size = recipe.DISK_MIB * _MIB
    with raw.open("wb") as empty:
        empty.truncate(size)
    first = _FIRST_SECTOR * _SECTOR
    root_mib = recipe.DISK_MIB - recipe.IDENTITY_MIB - first // _MIB
    table = made.with_name("table")
    table.write_text(
        f"label: dos\nlabel-id: 0x{recipe.disk_id(identifier)}\n"
        f"start={_FIRST_SECTOR}, size={root_mib * _MIB // _SECTOR}, type=83, bootable\n"
        f"start={_FIRST_SECTOR + root_mib * _MIB // _SECTOR}, type=da\n"
    )
    run(["sh", "-c", 'exec "$0" -q "$1" <"$2"', program("sfdisk"), raw, table])
    table.unlink()
    run(
        [
            *("mke2fs", "-q", "-t", "ext4", "-U", recipe.filesystem_uuid(identifier), "-d", tree),
            *("-E", f"offset={first},root_owner=0:0", raw, f"{root_mib}M"),
        ],
        timeout_s=_STEP_S,
    )
    _write_boot_loader(raw, tree / "boot/grub/i386-pc")
    run(["qemu-img", "convert", "-f", "raw", "-O", "qcow2", raw, made], timeout_s=_STEP_S)
    raw.unlink()


def _write_boot_loader(raw: Path, folder: Path) -> None:
    """boot.img up to the partition table, core.img from the second sector on, as grub-install does."""
    core = (folder / "core.img").read_bytes()
    if len(core) > (_FIRST_SECTOR - 1) * _SECTOR:
        raise VmError(f"GRUB's core image has {len(core)} bytes and does not fit in front of the partition")
    with raw.open("r+b") as disk:
        disk.write((folder / "boot.img").read_bytes()[:440])
        disk.seek(_SECTOR)
        disk.write(core)


def identity_offset() -> int:
    """Where on the disk the identity's archive begins, in bytes."""
    return (recipe.DISK_MIB - recipe.IDENTITY_MIB) * _MIB
