"""The digest of the code that judges, so that a certificate names what judged it."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable

# What decides a verdict or runs on a node; the command line and the report's looks do not.
_JUDGING = ("model", "node", "probe", "checks", "knobs", "profiles", "certify", "registry.py")
_SUFFIXES = (".py", ".yaml", ".json")


@cache
def content_digest() -> str:
    """SHA-256 (hex) over the names and bytes of the package's judging parts."""
    package = resources.files("nodeprep")
    total = hashlib.sha256()
    for name in _JUDGING:
        for path, entry in _walk(package / name, name):
            total.update(path.encode() + b"\0" + hashlib.sha256(entry.read_bytes()).digest())
    return total.hexdigest()


def _walk(entry: Traversable, path: str) -> list[tuple[str, Traversable]]:
    if entry.is_file():
        return [(path, entry)] if path.endswith(_SUFFIXES) else []
    found: list[tuple[str, Traversable]] = []
    for child in sorted(entry.iterdir(), key=lambda child: child.name):
        if child.name != "__pycache__":
            found.extend(_walk(child, f"{path}/{child.name}"))
    return found
