"""What goes into the image of a virtual machine, and the hash of it all."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterable
from pathlib import Path

SUITE = "bookworm"
PACKAGES = (
    "linux-image-amd64",
    "grub-pc",
    "systemd-sysv",
    "udev",
    "dbus",
    "initramfs-tools",
    "lz4",
    "e2fsprogs",
    "kmod",
    "procps",
    "iproute2",
    "pciutils",
    "dmidecode",
    "ipmitool",
    "openssh-server",
    "sudo",
    "python3",
    "python3-apt",
    "ca-certificates",
    "less",
)
# Half of the kernel's modules are for hardware that no virtual machine of the rack has.
_MODULES_LEFT_OUT = (
    "sound",
    "drivers/bluetooth",
    "drivers/gpu",
    "drivers/iio",
    "drivers/infiniband",
    "drivers/input",
    "drivers/isdn",
    "drivers/leds",
    "drivers/media",
    "drivers/mtd",
    "drivers/net/wireless",
    "drivers/scsi",
    "drivers/staging",
    "net/bluetooth",
    "net/mac80211",
    "net/wireless",
)
PATHS_LEFT_OUT = (
    "/usr/share/man/*",
    "/usr/share/doc/*",
    "/usr/share/locale/*",
    *(f"/lib/modules/*/kernel/{folder}/*" for folder in _MODULES_LEFT_OUT),
)

_HERE = Path(__file__).parent
# Laid over the installed packages; modes are those of the files here unless image_finish.sh sets others.
FILES = _HERE / "image_files"
FINISH = _HERE / "image_finish.sh"
CLOUD_DROP_IN = _HERE / "50-cloudimg-settings.cfg"

DISK_MIB = 3072
# The last MiB of the disk is a second partition: the tar archive that makes a machine an individual.
IDENTITY_MIB = 1


def packages_id() -> str:
    """Hash of what decides which packages are installed; their versions are those of the day."""
    return digest([SUITE, *PACKAGES, "", *PATHS_LEFT_OUT])


def image_id(packages: str) -> str:
    """Hash of everything that goes into the image.

    Args:
        packages: Hash of the installed packages.
    """
    files = sorted(path for path in FILES.rglob("*") if path.is_file())
    named = [f"{path.relative_to(FILES)}\0{path.read_text()}" for path in files]
    builder = [Path(__file__).with_name(name).read_text() for name in ("image.py", "recipe.py")]
    return digest([packages, FINISH.read_text(), CLOUD_DROP_IN.read_text(), *named, *builder])


def filesystem_uuid(image: str) -> str:
    """UUID of an image's root file system: the same for the same image."""
    return str(uuid.uuid5(uuid.NAMESPACE_OID, image))


def disk_id(image: str) -> str:
    """Identifier of an image's partition table, eight hex digits."""
    return image[:8]


def digest(parts: Iterable[str]) -> str:
    """A short hash of texts, in their order."""
    return hashlib.sha256("\0\0".join(parts).encode()).hexdigest()[:16]
