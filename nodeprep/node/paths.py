"""Files below a root: "/" on a real machine, any other folder for a simulated one."""

from __future__ import annotations

import os
from typing import List


def canonical_root(root: str) -> str:
    """An absolute root; "/" for every spelling of the machine's own ("//", a link to it)."""
    try:
        return "/" if os.path.samefile(root, "/") else os.path.abspath(root)
    except OSError:
        return os.path.abspath(root)


def is_real(root: str) -> bool:
    """True when the root is the machine itself. Every other root yields simulated facts."""
    return canonical_root(root) == "/"


def under(root: str, path: str) -> str:
    """The place of an absolute path below a root."""
    return os.path.join(root, path.lstrip("/"))


def read_bytes(root: str, path: str, limit: int = -1) -> bytes:
    """The content of a file below the root.

    Raises:
        OSError: It is missing or may not be read.
    """
    with open(under(root, path), "rb") as file:
        return file.read(limit)


def read_text(root: str, path: str) -> str:
    """The content of a file below the root, without the white space around it.

    Raises:
        OSError: It is missing or may not be read.
    """
    return read_bytes(root, path).decode("utf-8", "replace").strip()


def list_folder(root: str, path: str) -> List[str]:
    """Names in a folder below the root, sorted.

    Raises:
        OSError: It is missing or may not be read.
    """
    return sorted(os.listdir(under(root, path)))


def exists(root: str, path: str) -> bool:
    """True when the path exists below the root.

    Raises:
        OSError: It cannot be known: a folder on the way may not be entered.
    """
    try:
        os.stat(under(root, path))
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def link_target_name(root: str, path: str) -> str:
    """The last component of a symbolic link's target, as sysfs uses it for driver and group.

    Raises:
        OSError: There is no such link.
    """
    return os.path.basename(os.readlink(under(root, path)))
