"""What a simulated node is made of. Plain frozen data: vary it with `replace` and the with_* methods."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from nodeprep.errors import UsageError
from nodeprep.sim.hardware import DRIVER_VERSION

GIB = 1 << 30

CORRECTABLE_NAMES = (
    "RxErr", "BadTLP", "BadDLLP", "Rollover", "Timeout", "NonFatalErr", "CorrIntErr", "HeaderOF",
)  # fmt: skip
UNCORRECTABLE_NAMES = (
    "Undefined", "DLP", "SDES", "TLP", "FCP", "CmpltTO", "CmpltAbrt", "UnxCmplt", "RxOF", "MalfTLP", "ECRC",
    "UnsupReq", "ACSViol", "UncorrIntErr", "BlockedTLP", "AtomicOpBlocked", "TLPBlockedErr",
    "PoisonTLPBlocked",
)  # fmt: skip

# What the kernel prints for each root bridge, by outcome of the _OSC negotiation.
# Source: drivers/acpi/pci_root.c of Linux 6.8, negotiate_os_control().
OSC_SUPPORTS = "_OSC: OS supports [ExtendedConfig ASPM ClockPM Segments MSI EDR HPX-Type3]"
OSC_GRANTED = (
    OSC_SUPPORTS,
    "_OSC: platform does not support [SHPCHotplug]",
    "_OSC: OS now controls [PCIeHotplug PME AER PCIeCapability LTR DPC]",
)
OSC_WITHOUT_AER = (
    OSC_SUPPORTS,
    "_OSC: platform does not support [SHPCHotplug AER DPC]",
    "_OSC: OS now controls [PCIeHotplug PME PCIeCapability LTR]",
)
OSC_NOT_REQUESTED = (
    "_OSC: OS supports [ExtendedConfig Segments MSI EDR HPX-Type3]",
    "_OSC: not requesting OS control; OS requires [ExtendedConfig ASPM ClockPM MSI]",
)
"""What `pcie_aspm=off` leads to: the kernel does not ask for anything, AER included."""

ALL_ERRORS = ("correctable", "non_fatal", "fatal", "unsupported_request")
ROOT_ERRORS = ("correctable", "non_fatal", "fatal")
PORT_DRIVER = "pcieport"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceDescription:
    """One PCI function on the way to a GPU.

    Attributes:
        address: `dddd:bb:dd.f`.
        port_type: As in the facts: root_port, upstream_port, downstream_port, endpoint.
        cap_speed_gts: GT/s, one of 2.5, 5, 8, 16, 32, 64; likewise sta_ and target_.
        aspm_enabled: Of ("L0s", "L1"): what LnkCtl of this end has switched on.
        reporting: DevCtl enables.
        root_reporting: Root Error Command enables; root ports only.
        correctable: Counts by error name; names left out are 0. Likewise non_fatal and fatal.
        rootport_totals: Correctable, non-fatal and fatal messages received; root ports only.
        config_bytes: How much configuration space can be read: 4096 by root, 64 without.
        gone: Configuration space reads all 0xff: the device fell off the bus.
        has_aer_counters: False as on a kernel without PCIe AER.
    """

    address: str
    vendor_id: str
    device_id: str
    class_code: str
    port_type: str
    driver: str = ""
    numa_node: int = 0
    cap_speed_gts: float = 32.0
    cap_width_lanes: int = 16
    sta_speed_gts: float = 32.0
    sta_width_lanes: int = 16
    target_speed_gts: float = 32.0
    aspm_supported: tuple[str, ...] = ("L1",)
    aspm_enabled: tuple[str, ...] = ()
    reporting: tuple[str, ...] = ALL_ERRORS
    root_reporting: tuple[str, ...] = ROOT_ERRORS
    correctable: Mapping[str, int] = field(default_factory=dict)
    non_fatal: Mapping[str, int] = field(default_factory=dict)
    fatal: Mapping[str, int] = field(default_factory=dict)
    rootport_totals: tuple[int, int, int] = (0, 0, 0)
    config_bytes: int = 4096
    gone: bool = False
    has_aer_counters: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuDescription:
    """A GPU as the PCI bus has it: the hops from root port to GPU, both included.

    GPUs that share a port carry the same DeviceDescription of it.
    """

    hops: tuple[DeviceDescription, ...]

    @property
    def address(self) -> str:
        """PCI address of the GPU itself."""
        return self.hops[-1].address


@dataclass(frozen=True, slots=True, kw_only=True)
class NicDescription:
    """A network interface. `ports` are the addresses of the ports above it, root port first."""

    name: str
    mac: str
    address: str
    driver: str
    ports: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuDescription:
    """Logical CPUs; dmi_threads None means firmware has no SMBIOS processor entries."""

    model: str = "Intel(R) Xeon(R) Platinum 8480C"
    sockets: int = 2
    present: int = 224
    online: int = 224
    dmi_threads: int | None = 224
    hypervisor: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryDescription:
    """Memory: what the kernel has, and the modules that SMBIOS lists."""

    total_bytes: int = 2015 * GIB
    modules: int = 32
    module_bytes: int = 64 * GIB


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverDescription:
    """Kernel drivers. version None means no NVIDIA module is loaded."""

    version: str | None = DRIVER_VERSION
    open_module: bool = True
    disk_version: str | None = DRIVER_VERSION
    nouveau: bool = False
    persistenced: tuple[str, ...] | None = ("/usr/bin/nvidia-persistenced", "--user", "nvpd", "--verbose")
    """Command line of the running daemon; None when it does not run."""
    systemd: bool = True
    """systemd runs; without it nothing of nodeprep's can act at boot."""


def _default_dmi() -> dict[str, str]:
    return {
        "sys_vendor": "Simulated",
        "product_name": "HGX H100 8-GPU",
        "board_vendor": "Simulated",
        "board_name": "SIM-H100-8",
        "bios_vendor": "Simulated Firmware",
        "bios_version": "1.0.3",
        "bios_date": "03/14/2025",
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeDescription:
    """A whole simulated node. The defaults are an 8-GPU H100 SXM server as the policy wants it.

    Attributes:
        dmi: Identity strings by file name; serials and UUID are derived from the hostname unless given.
        iommu_units: Active IOMMUs, for example ("dmar0", "dmar1").
        iommu_group_type: Type of every group ("DMA-FQ", "identity"); "" means there are no groups.
        osc_lines: What the kernel log says about each root bridge.
        firmware_first: Whether HEST marks PCIe errors so; None means the machine has no HEST.
        log_first_sequence: Above 0, the ring buffer has overwritten the records before it.
        messages: Further kernel log lines, as (priority, text), after the boot lines.
    """

    hostname: str = "node01"
    gpus: tuple[GpuDescription, ...] = ()
    nics: tuple[NicDescription, ...] = ()
    boot_id: str = ""
    uptime_s: float = 3600.0
    kernel_release: str = "6.8.0-85-generic"
    cmdline: str = (
        "BOOT_IMAGE=/vmlinuz-6.8.0-85-generic root=UUID=5f0c8f0e-8a53-4a05-a8b1-6c1d6a0f7d11 ro "
        "console=tty0 console=ttyS0,115200 pcie_aspm=off iommu=off pcie_ports=native"
    )
    cpu: CpuDescription = CpuDescription()
    memory: MemoryDescription = MemoryDescription()
    dmi: Mapping[str, str] = field(default_factory=_default_dmi)
    iommu_units: tuple[str, ...] = ()
    iommu_group_type: str = ""
    osc_lines: tuple[str, ...] = OSC_NOT_REQUESTED
    firmware_first: bool | None = False
    driver: DriverDescription = DriverDescription()
    log_first_sequence: int = 0
    messages: tuple[tuple[int, str], ...] = ()

    @property
    def devices(self) -> dict[str, DeviceDescription]:
        """Every described PCI function by address, root ports before what is below them."""
        return {hop.address: hop for gpu in self.gpus for hop in gpu.hops}

    def derived_id(self, what: str) -> str:
        """A UUID that is always the same for this hostname and purpose."""
        return str(uuid.uuid5(uuid.NAMESPACE_DNS, f"{what}.{self.hostname}.simulated.invalid"))

    def with_device(self, address: str, **changes: Any) -> NodeDescription:
        """The same node with other values on one PCI function, on every path it is part of.

        Raises:
            UsageError: The node has no such function.
        """
        if address not in self.devices:
            known = ", ".join(self.devices)
            raise UsageError(f"no simulated device {address}", hint=f"this node has {known}")
        return self.with_devices(lambda device: device.address == address, **changes)

    def with_devices(
        self, chosen: Callable[[DeviceDescription], bool] = lambda _: True, **changes: Any
    ) -> NodeDescription:
        """The same node with other values on all chosen PCI functions (default: all)."""
        gpus = tuple(
            replace(
                gpu,
                hops=tuple(replace(hop, **changes) if chosen(hop) else hop for hop in gpu.hops),
            )
            for gpu in self.gpus
        )
        return replace(self, gpus=gpus)

    def with_cmdline(self, *, add: tuple[str, ...] = (), remove: tuple[str, ...] = ()) -> NodeDescription:
        """The same node with arguments added to and removed from its kernel command line."""
        kept = [argument for argument in self.cmdline.split() if argument not in remove]
        return replace(self, cmdline=" ".join([*kept, *add]))
