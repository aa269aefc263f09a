"""The IOMMU as the kernel runs it: units and groups from sysfs, never from what the log announced."""

from __future__ import annotations

from collections import Counter
from typing import Any, Dict, List

from .paths import exists, list_folder, read_text
from .reading import NotSupported, attempt

FIELDS = ("units", "groups", "group_types")

_UNITS = "/sys/class/iommu"
_GROUPS = "/sys/kernel/iommu_groups"


def collect(root: str) -> Dict[str, Any]:
    """The "iommu" part of the facts."""
    return {
        "units": attempt(units, root),
        "groups": attempt(lambda: len(_groups(root))),
        "group_types": attempt(group_types, root),
    }


def units(root: str) -> List[str]:
    """Names of the active IOMMUs, for example dmar0; none when it is off.

    Raises:
        NotSupported: The kernel was built without IOMMU support.
        OSError: sysfs cannot be read.
    """
    if exists(root, "/sys/class") and not exists(root, _UNITS):
        raise NotSupported("this kernel was built without IOMMU support")
    return list_folder(root, _UNITS)


def group_types(root: str) -> Dict[str, int]:
    """How many groups there are of each type.

    Raises:
        NotSupported: As `units`, or the kernel is too old to say the type.
        OSError: sysfs cannot be read.
    """
    types: Counter[str] = Counter()
    for group in _groups(root):
        path = f"{_GROUPS}/{group}/type"
        if not exists(root, path):
            raise NotSupported("this kernel does not tell the type of an IOMMU group")
        types[read_text(root, path)] += 1
    return dict(types)


def _groups(root: str) -> List[str]:
    if exists(root, "/sys/kernel") and not exists(root, _GROUPS):
        raise NotSupported("this kernel was built without IOMMU support")
    return list_folder(root, _GROUPS)
