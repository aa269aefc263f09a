"""What systemd-boot and its stub tell and are told through EFI variables.

Source: The Boot Loader Interface of systemd; Documentation/filesystems/efivarfs.rst of Linux (four
bytes of attributes come first).
"""

from __future__ import annotations

from typing import Optional

from ..paths import exists, read_bytes

_FOLDER = "/sys/firmware/efi/efivars"
_VENDOR = "4a67b082-0a4c-41cf-b6c7-440b29bb8c4f"
_ATTRIBUTES = 4


def text(root: str, name: str) -> Optional[str]:
    """A variable that holds text, None when it is not set.

    Raises:
        OSError: It is set but cannot be read.
    """
    found = _content(root, name)
    return None if found is None else found.decode("utf-16-le", "replace").rstrip("\0")


def number(root: str, name: str) -> Optional[int]:
    """A variable that holds a number, None when it is not set.

    Raises:
        OSError: It is set but cannot be read.
    """
    found = _content(root, name)
    return None if found is None else int.from_bytes(found, "little")


def _content(root: str, name: str) -> Optional[bytes]:
    path = f"{_FOLDER}/{name}-{_VENDOR}"
    return read_bytes(root, path)[_ATTRIBUTES:] if exists(root, path) else None
