"""AER totals of every function on a GPU's path, for samples: cheap, and hop by hop.

A corrected error counts at the receiver, which may be any port between root port and GPU; a sum over the
path would hide which cable or slot it was.
"""

from __future__ import annotations

from typing import Any, Dict, List

from . import aer, pci
from .config_space import ConfigSpace
from .reading import NotSupported, attempt

_FILES = {
    "correctable": "aer_dev_correctable",
    "non_fatal": "aer_dev_nonfatal",
    "fatal": "aer_dev_fatal",
}


def totals(root: str, address: str) -> List[Dict[str, Any]]:
    """For each hop from the root port down: address, and a reading of each kind's total since boot.

    Raises:
        OSError: sysfs cannot be read.
        ValueError: sysfs does not place the device below a host bridge.
    """
    return [
        {
            "address": hop,
            **{kind: attempt(_total, root, f"{pci.DEVICES}/{hop}/{name}") for kind, name in _FILES.items()},
        }
        for hop in pci.hops(root, address)
    ]


def _total(root: str, path: str) -> int:
    return sum(aer.counters(root, path, _no_config).values())


def _no_config() -> ConfigSpace:
    raise NotSupported("not looked at while sampling")
