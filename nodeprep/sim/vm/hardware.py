"""What a virtual machine is made of, and the QEMU words for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from nodeprep.sim.vm import bios

# The GPU stand-in: QEMU's CXL memory device is the one endpoint with a free choice of link speed and
# width whose AER messages reach the root port. No emulated device has a vendor id of one's own choice.
GPU_IDS = ("8086:0d93",)
# No processor of Intel's that QEMU knows is free of Meltdown: the kernel would change page tables at each
# system call, which costs an emulator more than half its time. Younger ones of AMD's get return thunks.
CPU_MODEL = "Opteron_G3,+x2apic,+rdrand"


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """A root port and what is plugged into it.

    Attributes:
        holds: "gpu", "nic", or "switch" (with two GPUs below it).
        generation: PCIe generation of the port.
        lanes: Width of the port.
    """

    holds: str
    generation: int = 5
    lanes: int = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Hardware:
    """One machine.

    Attributes:
        cloud: Its image has a cloud image's GRUB drop-in, which assigns GRUB_CMDLINE_LINUX_DEFAULT.
        gpu_generation: What the GPUs are capable of.
    """

    cpus: int = 2
    memory_mib: int = 512
    cloud: bool = False
    gpu_generation: int = 5
    slots: tuple[Slot, ...] = field(
        default=(Slot(holds="gpu"), Slot(holds="switch"), Slot(holds="nic", generation=3, lanes=8))
    )

    @property
    def gpus(self) -> tuple[str, ...]:
        """QEMU ids of the GPUs, in the order of their slots."""
        count = sum({"gpu": 1, "switch": 2}.get(slot.holds, 0) for slot in self.slots)
        return tuple(f"gpu{number}" for number in range(count))


def words(hardware: Hardware, settings: Mapping[str, str]) -> list[str]:
    """The QEMU words for a machine whose BIOS has these settings.

    x-speed of the port is the BIOS's limit; QEMU's endpoints do not train, so theirs follows.
    """
    made = ["-machine", "q35", "-cpu", CPU_MODEL, "-smp", str(hardware.cpus), "-m", str(hardware.memory_mib)]
    if settings[bios.IOMMU] == "Enabled":
        made += ["-device", "intel-iommu,intremap=on"]
    gpus = iter(hardware.gpus)
    for number, slot in enumerate(hardware.slots, start=1):
        limit = bios.generation(settings, number)
        made += _slot(hardware, number, slot, limit, gpus)
    return made


def _slot(hardware: Hardware, number: int, slot: Slot, limit: int, gpus: Iterator[str]) -> Iterator[str]:
    speed = min(slot.generation, limit)
    port = f"port{number}"
    # hotplug=off: with pcie_ports=native the kernel would else find the slot empty after a reboot.
    yield from _device(
        f"pcie-root-port,id={port},bus=pcie.0,addr={hex(0x10 + number)},hotplug=off,chassis={10 * number},"
        f"slot={number},x-speed={_gigatransfers(speed)},x-width={slot.lanes}"
    )
    gpu_speed = min(hardware.gpu_generation, speed)
    if slot.holds == "gpu":
        yield from _gpu(next(gpus), port, gpu_speed)
    elif slot.holds == "nic":
        yield from ("-netdev", f"user,id=net{number},restrict=on")
        yield from _device(f"virtio-net-pci,id=nic{number},netdev=net{number},bus={port},romfile=,aer=on")
    elif slot.holds == "switch":
        yield from _device(f"x3130-upstream,id=switch{number},bus={port}")
        for below in (0, 1):
            down = f"switch{number}-{below}"
            yield from _device(
                # With pcie_ports=native the kernel's hot-plug driver would find the slots empty.
                f"xio3130-downstream,id={down},bus=switch{number},"
                f"chassis={10 * number + 1 + below},slot={below},hotplug=off"
            )
            yield from _gpu(next(gpus), down, gpu_speed)
    else:
        raise ValueError(f"no slot holds {slot.holds!r}")


def _gpu(name: str, bus: str, generation: int) -> Iterator[str]:
    yield from ("-object", f"memory-backend-ram,id={name}-memory,size=16M")
    yield from _device(
        f"cxl-type3,id={name},bus={bus},volatile-memdev={name}-memory,"
        f"x-speed={_gigatransfers(generation)},x-width=16"
    )


def _device(words: str) -> tuple[str, str]:
    return "-device", words


def _gigatransfers(generation: int) -> str:
    """As QEMU spells transfer rates."""
    return {1: "2_5", 2: "5", 3: "8", 4: "16", 5: "32", 6: "64"}[generation]
