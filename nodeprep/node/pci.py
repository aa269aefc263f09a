"""GPUs as the PCI bus knows them, with every hop from the root port down.

The bus is the witness that NVML can be held against: a GPU that the driver lost is still here.
"""

from __future__ import annotations

import os
import re
from typing import Any, Callable, Dict, List, Sequence

from . import aer
from .config_space import ConfigSpace
from .paths import exists, link_target_name, list_folder, read_bytes, read_text, under
from .pci_address import addresses_in
from .reading import NotSupported, Reading, attempt, error

FIELDS = ("devices", "gpu_paths")

DEVICES = "/sys/bus/pci/devices"
_NVIDIA = "10de"
# VGA controller and 3D controller (data-centre boards); audio functions and NVSwitches are others.
_DISPLAY_CLASSES = ("0300", "0302")
_SPEED = re.compile(r"(\d+(?:\.\d+)?) ?GT/s")


def collect(root: str, gpu_ids: Sequence[str] = ()) -> Dict[str, Any]:
    """The "pci" part of the facts.

    Args:
        root: Root of the machine.
        gpu_ids: Further "vendor:device" pairs to take for GPUs; for tests on stand-in devices.
    """
    paths = attempt(gpu_paths, root, tuple(gpu_ids))
    if paths["state"] != "ok":
        return {"devices": error(f"GPUs are unknown: {paths['detail']}"), "gpu_paths": paths}
    addresses = sorted({hop for path in paths["value"] for hop in path["hops"]})
    return {"devices": attempt(lambda: [device(root, at) for at in addresses]), "gpu_paths": paths}


def gpu_paths(root: str, gpu_ids: Sequence[str]) -> List[Dict[str, Any]]:
    """Each GPU with its hops from the root port down, itself included.

    Raises:
        OSError: The bus cannot be listed, or a device cannot be identified: it might be a GPU.
    """
    return [{"gpu": address, "hops": hops(root, address)} for address in gpus(root, gpu_ids)]


def gpus(root: str, gpu_ids: Sequence[str] = ()) -> List[str]:
    """Addresses of the GPUs on the bus.

    Raises:
        OSError: The bus cannot be listed, or a device cannot be identified: it might be a GPU.
    """
    return [address for address in list_folder(root, DEVICES) if _is_gpu(root, address, gpu_ids)]


def hops(root: str, address: str) -> List[str]:
    """Ports from the root port down to a device, and the device itself.

    Raises:
        ValueError: sysfs does not place the device below a host bridge.
    """
    real_path = os.path.realpath(under(root, f"{DEVICES}/{address}"))
    # The last host bridge counts: behind a volume management device a second one begins.
    below_bridge = re.split(r"/pci[0-9a-f]{4,8}:[0-9a-f]{2}(?=/)", real_path)[-1]
    found = addresses_in(below_bridge)
    if not found or found[-1] != address:
        raise ValueError(f"sysfs places {address} at {real_path}, which is no PCI path")
    return found


def device(root: str, address: str) -> Dict[str, Any]:
    """One PCI function.

    Raises:
        OSError: Its identity cannot be read.
    """
    folder = f"{DEVICES}/{address}"
    config = _config_reader(root, f"{folder}/config")
    return {
        "address": address,
        "vendor_id": _hex_id(root, folder, "vendor"),
        "device_id": _hex_id(root, folder, "device"),
        "class_code": _hex_id(root, folder, "class"),
        "port_type": attempt(lambda: config().port_type()),
        "driver": attempt(_driver, root, folder),
        "numa_node": attempt(lambda: int(read_text(root, f"{folder}/numa_node"))),
        "iommu_group": attempt(_iommu_group, root, folder),
        "link": _link(root, folder, config),
        "aer": aer.collect(root, folder, config),
    }


def parse_speed_gts(text: str) -> float:
    """GT/s from the kernel's "32.0 GT/s PCIe"; older kernels print "8 GT/s".

    Raises:
        ValueError: The kernel does not know the speed.
    """
    match = _SPEED.match(text)
    if match is None:
        raise ValueError(f"the kernel gives the link speed as {text!r}")
    return float(match.group(1))


def _is_gpu(root: str, address: str, gpu_ids: Sequence[str]) -> bool:
    folder = f"{DEVICES}/{address}"
    vendor, product = _hex_id(root, folder, "vendor"), _hex_id(root, folder, "device")
    if f"{vendor}:{product}" in {wanted.lower() for wanted in gpu_ids}:
        return True
    return vendor == _NVIDIA and _hex_id(root, folder, "class")[:4] in _DISPLAY_CLASSES


def _hex_id(root: str, folder: str, name: str) -> str:
    text = read_text(root, f"{folder}/{name}")
    return text[2:].lower() if text.startswith("0x") else text.lower()


def _config_reader(root: str, path: str) -> Callable[[], ConfigSpace]:
    """Reads the configuration space once; each use afterwards gets the same answer or error."""
    content: List[Any] = []

    def read() -> ConfigSpace:
        if not content:
            try:
                content.append(ConfigSpace(read_bytes(root, path)))
            except OSError as problem:
                content.append(problem)
        if isinstance(content[0], OSError):
            raise content[0]
        return content[0]  # type: ignore[no-any-return]

    return read


def _driver(root: str, folder: str) -> str:
    return link_target_name(root, f"{folder}/driver") if exists(root, f"{folder}/driver") else ""


def _iommu_group(root: str, folder: str) -> int:
    if not exists(root, f"{folder}/iommu_group"):
        raise NotSupported("the kernel has put the device in no IOMMU group")
    return int(link_target_name(root, f"{folder}/iommu_group"))


def _link(root: str, folder: str, config: Callable[[], ConfigSpace]) -> Dict[str, Any]:
    def from_sysfs(name: str, parse: Callable[[str], Any]) -> Reading:
        return attempt(lambda: parse(read_text(root, f"{folder}/{name}")))

    def with_fallback(register: Reading, name: str, parse: Callable[[str], Any]) -> Reading:
        # Without root the kernel still tells speed and width in sysfs; ASPM it does not.
        if register["state"] == "error" and "needs root" in register["detail"]:
            fallback = from_sysfs(name, parse)
            return fallback if fallback["state"] == "ok" else register
        return register

    speed_cap, width_cap = (
        attempt(lambda: config().cap_speed_gts()),
        attempt(lambda: config().cap_width_lanes()),
    )
    speed_now, width_now = (
        attempt(lambda: config().sta_speed_gts()),
        attempt(lambda: config().sta_width_lanes()),
    )
    return {
        "cap_speed_gts": with_fallback(speed_cap, "max_link_speed", parse_speed_gts),
        "cap_width_lanes": with_fallback(width_cap, "max_link_width", int),
        "sta_speed_gts": with_fallback(speed_now, "current_link_speed", parse_speed_gts),
        "sta_width_lanes": with_fallback(width_now, "current_link_width", int),
        "target_speed_gts": attempt(lambda: config().target_speed_gts()),
        "aspm_supported": attempt(lambda: config().aspm_supported()),
        "aspm_enabled": attempt(lambda: config().aspm_enabled()),
    }
