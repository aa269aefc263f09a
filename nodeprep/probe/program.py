"""This program itself: where its code is, and its digest."""

from __future__ import annotations

import hashlib
import os
import zipfile
from typing import List, Tuple

# .../nodeprep/probe/program.py: the directory or the .pyz that holds the package.
IMPORT_PATH = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def digest() -> str:
    """SHA-256 of the .pyz; run from a source tree, "sources:" and that of the program's files."""
    if zipfile.is_zipfile(IMPORT_PATH):
        with open(IMPORT_PATH, "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()
    total = hashlib.sha256()
    for name, path in sorted(_sources()):
        with open(path, "rb") as file:
            total.update(b"%s\0%s" % (name.encode(), hashlib.sha256(file.read()).digest()))
    return "sources:" + total.hexdigest()


def _sources() -> List[Tuple[str, str]]:
    found: List[Tuple[str, str]] = []
    for package in ("node", "probe"):
        for folder, _, names in os.walk(os.path.join(IMPORT_PATH, "nodeprep", package)):
            paths = (os.path.join(folder, name) for name in names if name.endswith((".py", ".json")))
            found.extend((os.path.relpath(path, IMPORT_PATH), path) for path in paths)
    return found
