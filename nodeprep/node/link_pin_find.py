"""Which ports stand above GPUs, and whether a port is still the one it was."""

from __future__ import annotations

from typing import Dict, Optional, Sequence, Tuple

from . import pci
from .link_pin_bus import Bus
from .link_pin_unit import Config, Pin
from .paths import exists
from .pci_address import normalise


def find_pins(bus: Bus, gpus: Sequence[str], config: Optional[Config]) -> Tuple[Pin, ...]:
    """The ports directly above GPUs, each with its GPU, in the order of the GPUs' addresses.

    Args:
        bus: Of the machine.
        gpus: Addresses of GPUs; none means all NVIDIA GPUs.
        config: What is pinned already. Its GPUs that are still there are added.

    Raises:
        OSError: The bus cannot be read, or a named GPU is not there.
        ValueError: A GPU's port is out of sight, or it is no PCI address.
        NotSupported: The port is no PCI Express port.
    """
    wanted = {normalise(gpu) for gpu in gpus} or set(pci.gpus(bus.root))
    pinned = {pin.gpu for pin in config.pins} if config else set()
    wanted |= {gpu for gpu in pinned if _is_there(bus, gpu)}
    pins: Dict[str, Pin] = {}
    for gpu in sorted(wanted):
        pin = _pin_of(bus, gpu)
        # Two functions of one board share its link.
        pins.setdefault(pin.port, pin)
    return tuple(pins.values())


def gone(bus: Bus, pin: Pin) -> str:
    """Why a port is no longer the one that was pinned, "" when it is.

    Raises:
        OSError: It cannot be known.
    """
    if not _is_there(bus, pin.port):
        return "is gone"
    try:
        found = (bus.read(pin.port).identity(), _path(bus, pin.port))
    except ValueError as error:
        return f"is gone: {error}"
    if found != (pin.port_id, pin.path):
        return f"is another port now: {found[0]} at {found[1]}, it was {pin.port_id} at {pin.path}"
    return ""


def _pin_of(bus: Bus, gpu: str) -> Pin:
    if not _is_there(bus, gpu):
        raise FileNotFoundError(f"there is no {gpu} on the PCI bus")
    hops = pci.hops(bus.root, gpu)
    if len(hops) < 2:
        raise ValueError(
            f"the port above {gpu} is out of sight: in a virtual machine only the host can pin it"
        )
    port = hops[-2]
    return Pin(port=port, gpu=gpu, port_id=bus.read(port).identity(), path=_path(bus, port))


def _path(bus: Bus, port: str) -> str:
    first, *others = pci.hops(bus.root, port)
    return "/".join([first, *(hop.split(":")[-1] for hop in others)])


def _is_there(bus: Bus, address: str) -> bool:
    return exists(bus.root, f"{pci.DEVICES}/{address}")
