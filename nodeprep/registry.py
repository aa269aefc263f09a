"""Discovery for every folder that holds one thing a file (checks, knobs, readers, reports).

A module of such a folder defines one constant (`CHECK = Check(id=...)`), and its id is the file's
name. A file that does not import, or whose id is another, is an error: a check that silently
vanishes would let a node pass.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from typing import Any

from nodeprep.errors import NodeprepError


@cache
def discover(package: str, constant: str) -> dict[str, Any]:
    """All entries of a one-per-file folder, by id, in the order of their names.

    Args:
        package: Dotted name, for example "nodeprep.checks".
        constant: Name of the constant each module defines, for example "CHECK".

    Returns:
        Mapping from id to the constant's value. Modules that begin with "_" are helpers.

    Raises:
        NodeprepError: A module lacks the constant or its id differs from the file name.
        ImportError: A module does not import.
    """
    folder = importlib.import_module(package)
    entries: dict[str, Any] = {}
    for info in sorted(pkgutil.iter_modules(folder.__path__), key=lambda info: info.name):
        if info.name.startswith("_"):
            continue
        module = importlib.import_module(f"{package}.{info.name}")
        try:
            entry = getattr(module, constant)
        except AttributeError:
            raise NodeprepError(f"{package}.{info.name} defines no {constant}") from None
        if entry.id != info.name:
            raise NodeprepError(f"{package}.{info.name}: its {constant} has the id {entry.id!r}")
        entries[info.name] = entry
    return entries
