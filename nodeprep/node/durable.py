"""Files written whole or not at all, also when the machine loses power meanwhile."""

from __future__ import annotations

import os
from typing import Optional

from .paths import under


def content(root: str, path: str) -> Optional[str]:
    """What the file holds now, None when there is none.

    Raises:
        OSError: It is there but may not be read.
    """
    try:
        with open(under(root, path), encoding="utf-8") as file:
            return file.read()
    except FileNotFoundError:
        return None


def put(root: str, path: str, text: Optional[str], mode: int = 0o644) -> None:
    """Gives a file its content; None removes it.

    Raises:
        OSError: It cannot be written; the old content is then still there.
    """
    target = under(root, path)
    if text is None:
        if os.path.lexists(target):
            os.unlink(target)
        return
    folder = os.path.dirname(target)
    os.makedirs(folder, exist_ok=True)
    temporary = f"{target}.nodeprep-{os.getpid()}"
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except OSError:
        if os.path.lexists(temporary):
            os.unlink(temporary)
        raise
    _sync_folder(folder)


def _sync_folder(folder: str) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
