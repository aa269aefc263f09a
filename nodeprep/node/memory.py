"""Memory: what the kernel manages, and what firmware says is installed."""

from __future__ import annotations

import re
from typing import Any, Dict

from .paths import read_text
from .reading import attempt
from .smbios import installed_memory_bytes

FIELDS = ("total_bytes", "dmi_installed_bytes")

_MEM_TOTAL = re.compile(r"^MemTotal:\s+(\d+) kB$", re.MULTILINE)


def collect(root: str) -> Dict[str, Any]:
    """The "memory" part of the facts."""
    return {
        "total_bytes": attempt(total_bytes, root),
        "dmi_installed_bytes": attempt(installed_memory_bytes, root),
    }


def total_bytes(root: str) -> int:
    """MemTotal of /proc/meminfo, in bytes.

    Raises:
        OSError: /proc/meminfo cannot be read.
        ValueError: It has no MemTotal line.
    """
    match = _MEM_TOTAL.search(read_text(root, "/proc/meminfo"))
    if match is None:
        raise ValueError("/proc/meminfo has no MemTotal line")
    return int(match.group(1)) * 1024
