"""The way from the root port to a GPU, and the links on it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from nodeprep.checks._check import Check, Context
from nodeprep.checks._facts import Which, facts
from nodeprep.model.facts import GpuPath, PciDevice
from nodeprep.model.reading import Unreadable
from nodeprep.model.result import CheckResult

# Ports whose link registers describe the link below them. The pair upstream port to downstream
# port inside a switch is no link: nothing can be trained wrongly there.
_FACING_DOWN = frozenset({"root_port", "downstream_port"})


@dataclass(frozen=True, slots=True)
class Hop:
    """One device on the way, with a pointer to it."""

    device: PciDevice
    where: str

    @property
    def address(self) -> str:
        """PCI address."""
        return self.device.address


@dataclass(frozen=True, slots=True)
class Way:
    """The hops from root port to GPU, looked up.

    Attributes:
        port_in_sight: The port above the GPU is the real one. False in a virtual machine: there is
            either no port above the GPU or one that the hypervisor made up, and neither tells
            anything of the copper.
    """

    gpu: str
    hops: tuple[Hop, ...]
    port_in_sight: bool

    @property
    def out_of_sight(self) -> str:
        """What to say of the port when it is not in sight."""
        seen = "no port above it is visible" if len(self.hops) == 1 else "the ports are the hypervisor's own"
        return f"the port above GPU {self.gpu} is out of sight ({seen}: a virtual machine)"


@dataclass(frozen=True, slots=True)
class LinkEnds:
    """One PCIe link. `upper` is None when only the GPU's own end can be seen."""

    upper: Hop | None
    lower: Hop
    gpu: str

    @property
    def ends(self) -> tuple[Hop, ...]:
        """The ends that can be seen, upper first."""
        return (self.upper, self.lower) if self.upper else (self.lower,)

    @property
    def name(self) -> str:
        """How to speak of it: by the device below, since that is what one pulls out."""
        kind = "GPU" if self.lower.address == self.gpu else "switch port"
        return f"{kind} {self.lower.address}"


def gpu_paths(context: Context, which: Which) -> Iterator[tuple[GpuPath, str]]:
    """The path of each GPU on the PCI bus, with a pointer to it.

    Raises:
        Unreadable: The PCI bus could not be read.
    """
    paths = facts(context, which).pci.gpu_paths.require("the list of GPUs on the PCI bus")
    for position, path in enumerate(paths):
        yield path, f"facts.{which}#/pci/gpu_paths/value/{position}"


def way(context: Context, which: Which, path: GpuPath) -> Way:
    """The devices along a path.

    Raises:
        Unreadable: A hop was not collected, or it is not known whether this is a virtual machine.
    """
    document = facts(context, which)
    devices = {
        device.address: Hop(device, f"facts.{which}#/pci/devices/value/{position}")
        for position, device in enumerate(document.pci.devices.require("the PCI device list"))
    }
    missing = [address for address in path.hops if address not in devices]
    if missing or not path.hops:
        raise Unreadable(f"hop {', '.join(missing) or '(none)'} on the way to {path.gpu} was not collected")
    # A simulated document's tree is the machine under test itself (stand-in devices in an emulator),
    # and whatever is concluded from it is marked simulated.
    virtual = not document.simulated and document.cpu.hypervisor.require("whether this is a virtual machine")
    return Way(
        gpu=path.gpu,
        hops=tuple(devices[address] for address in path.hops),
        port_in_sight=len(path.hops) > 1 and not virtual,
    )


def links(found: Way) -> tuple[LinkEnds, ...]:
    """The links along a way, root port first.

    Raises:
        Unreadable: A port's type could not be read, or no hop is a port that faces down.
    """
    if not found.port_in_sight:
        return (LinkEnds(None, found.hops[-1], found.gpu),)
    chain = tuple(
        LinkEnds(upper, lower, found.gpu)
        for upper, lower in pairwise(found.hops)
        if upper.device.port_type.require(f"the port type of {upper.address}") in _FACING_DOWN
    )
    if not chain or chain[-1].lower.address != found.gpu:
        raise Unreadable(f"no port that faces down is right above GPU {found.gpu}")
    return chain


def each_link(
    check: Check, context: Context, judge: Callable[[LinkEnds, Way], CheckResult]
) -> Iterator[CheckResult]:
    """One result for each link above a GPU; a link that several GPUs share is judged once."""
    judged: set[str] = set()
    for path, where in gpu_paths(context, "before"):
        try:
            found = way(context, "before", path)
            chain = links(found)
        except Unreadable as error:
            yield check.result("ERROR", path.gpu, str(error), evidence=(where,))
            continue
        for link in chain:
            if link.lower.address not in judged:
                judged.add(link.lower.address)
                yield check.on(link.lower.address, f"{link.lower.where}/link", judge, link, found)
