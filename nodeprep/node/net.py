"""Network interfaces that have a device behind them; a lost NIC is a sign of a bad boot argument."""

from __future__ import annotations

import os
from typing import Any, Dict, List

from .paths import exists, link_target_name, list_folder, read_text, under
from .pci_address import addresses_in
from .reading import NotSupported, attempt

_FOLDER = "/sys/class/net"


def collect(root: str) -> List[Dict[str, Any]]:
    """The "nics" part of the facts.

    Raises:
        OSError: /sys/class/net cannot be read.
    """
    return [
        {
            "name": name,
            "mac": attempt(read_text, root, f"{_FOLDER}/{name}/address"),
            "pci_address": attempt(pci_address, root, name),
            "driver": attempt(driver, root, name),
        }
        for name in list_folder(root, _FOLDER)
        if exists(root, f"{_FOLDER}/{name}/device")
    ]


def pci_address(root: str, name: str) -> str:
    """The PCI function that carries an interface, also when a virtio device lies between.

    Raises:
        NotSupported: The interface is not on the PCI bus (USB, platform).
    """
    addresses = addresses_in(os.path.realpath(under(root, f"{_FOLDER}/{name}/device")))
    if not addresses:
        raise NotSupported(f"{name} is not a PCI device")
    return addresses[-1]


def driver(root: str, name: str) -> str:
    """The driver bound to an interface's device.

    Raises:
        NotSupported: The device has no driver link.
    """
    path = f"{_FOLDER}/{name}/device/driver"
    if not exists(root, path):
        raise NotSupported(f"{name} has no driver link")
    return link_target_name(root, path)
