"""Folders that nodeprep's files need: they go with the last file, as systemctl and dpkg have it."""

from __future__ import annotations

import os

from .paths import under


def remove_if_empty(root: str, path: str) -> None:
    """Removes a folder with nothing in it; any other stays.

    Raises:
        OSError: It cannot be known whether there is something in it.
    """
    place = under(root, path)
    if os.path.isdir(place) and not os.path.islink(place) and not os.listdir(place):
        os.rmdir(place)
