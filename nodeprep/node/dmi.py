"""Identity of the machine from /sys/class/dmi/id. Serial numbers and the UUID need root."""

from __future__ import annotations

from typing import Any, Dict

from .paths import exists, read_text
from .reading import NotSupported, attempt

FIELDS = (
    "sys_vendor",
    "product_name",
    "product_serial",
    "product_uuid",
    "board_vendor",
    "board_name",
    "board_serial",
    "bios_vendor",
    "bios_version",
    "bios_date",
)

_FOLDER = "/sys/class/dmi/id"


def collect(root: str) -> Dict[str, Any]:
    """The "dmi" part of the facts."""
    return {name: attempt(identity, root, name) for name in FIELDS}


def identity(root: str, name: str) -> str:
    """One identity string.

    Raises:
        NotSupported: The machine has no DMI, or firmware did not fill this string in.
        OSError: It may not be read.
    """
    if not exists(root, _FOLDER):
        raise NotSupported("the machine has no DMI identity")
    if not exists(root, f"{_FOLDER}/{name}"):
        raise NotSupported(f"firmware gives no {name}")
    return read_text(root, f"{_FOLDER}/{name}")
