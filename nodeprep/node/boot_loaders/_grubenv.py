"""GRUB's environment block, the only thing GRUB itself can write between two boots.

Source: grub-core/lib/envblk.c of GRUB: a header line, NAME=VALUE lines with a backslash before
a backslash and a newline, and "#" up to the end of the block.
"""

from __future__ import annotations

from typing import Dict, List

from ..paths import read_bytes

_HEADER = b"# GRUB Environment Block\n"


def read(root: str, path: str) -> Dict[str, str]:
    """Variables of the block; none when there is no block.

    Raises:
        OSError: It is there but cannot be read.
        ValueError: It is no environment block.
    """
    try:
        block = read_bytes(root, path)
    except FileNotFoundError:
        return {}
    if not block.startswith(_HEADER):
        raise ValueError(f"{path} is not a GRUB environment block")
    return _variables(block[len(_HEADER) :].decode("utf-8", "replace"))


def _variables(text: str) -> Dict[str, str]:
    found: Dict[str, str] = {}
    for line in _lines(text):
        name, equals, value = line.partition("=")
        if equals and not line.startswith("#"):
            found[name] = value
    return found


def _lines(text: str) -> List[str]:
    lines = [""]
    characters = iter(text)
    for character in characters:
        if character == "\\":
            lines[-1] += next(characters, "")
        elif character == "\n":
            lines.append("")
        else:
            lines[-1] += character
    return lines
