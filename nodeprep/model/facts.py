"""`nodeprep.facts/1`: what a node really is, as observed on it in one round trip.

The node writes this as plain JSON (nodeprep/node/ cannot import this module); the contract test
tests/contract/test_facts_document.py holds the two together. PCI addresses are always
`dddd:bb:dd.f` in lower case, whatever the source printed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from nodeprep.model.bios import BiosFacts
from nodeprep.model.bmc import BmcSensors
from nodeprep.model.reading import Reading

SCHEMA = "nodeprep.facts/1"

# What node code of an earlier version did not send is not known; it is never taken for fine.
NOT_LOOKED_FOR: Reading[Any] = Reading("error", detail="not looked for by the node code that wrote this")
NOT_ASKED_FOR: Reading[Any] = Reading("error", detail="not asked for: inspect alone asks a BMC for them")


@dataclass(frozen=True, slots=True, kw_only=True)
class Collector:
    """Who looked, with which rights, and how long it took."""

    version: str
    python: str
    euid: int
    duration_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Boot:
    """Identity of this boot and its kernel command line."""

    boot_id: Reading[str]
    uptime_s: Reading[float]
    kernel_release: Reading[str]
    cmdline: Reading[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cpu:
    """Logical CPUs three ways: an `iommu=off` that loses x2APIC shows as online < dmi_threads."""

    model: Reading[str]
    present: Reading[int]
    online: Reading[int]
    dmi_threads: Reading[int]
    hypervisor: Reading[bool]
    """True inside a virtual machine: real root ports, and so AER, are then out of sight."""
    max_apic_id: Reading[int] = NOT_LOOKED_FOR
    """Highest APIC id of a running CPU; one above 254 needs x2APIC."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Memory the kernel has, and what DMI says is installed."""

    total_bytes: Reading[int]
    dmi_installed_bytes: Reading[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dmi:
    """Identity of the machine; serials need root."""

    sys_vendor: Reading[str]
    product_name: Reading[str]
    product_serial: Reading[str]
    product_uuid: Reading[str]
    board_vendor: Reading[str]
    board_name: Reading[str]
    board_serial: Reading[str]
    bios_vendor: Reading[str]
    bios_version: Reading[str]
    bios_date: Reading[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Nic:
    """One network interface that has a device behind it."""

    name: str
    mac: Reading[str]
    pci_address: Reading[str]
    driver: Reading[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """One end of a PCIe link, from its PCI Express capability (config space) or sysfs.

    Speeds in GT/s (2.5, 5, 8, 16, 32, 64). `aspm_enabled` is the ASPM Control field of LnkCtl:
    a subset of ("L0s", "L1"); the empty tuple means ASPM is off at this end.
    """

    cap_speed_gts: Reading[float]
    cap_width_lanes: Reading[int]
    sta_speed_gts: Reading[float]
    sta_width_lanes: Reading[int]
    target_speed_gts: Reading[float]
    aspm_supported: Reading[tuple[str, ...]]
    aspm_enabled: Reading[tuple[str, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Aer:
    """AER counters of one device by error name, and what it may report.

    Counters are cumulative since the kernel made the device object; the TOTAL_* lines are left out.
    `reporting` are the DevCtl enables: of ("correctable", "non_fatal", "fatal", "unsupported_request").
    `rootport_*` exist on root ports and RCECs only; a fatal error of an endpoint shows only there.
    """

    correctable: Reading[Mapping[str, int]]
    non_fatal: Reading[Mapping[str, int]]
    fatal: Reading[Mapping[str, int]]
    reporting: Reading[tuple[str, ...]]
    rootport_correctable: Reading[int]
    rootport_non_fatal: Reading[int]
    rootport_fatal: Reading[int]
    rootport_reporting: Reading[tuple[str, ...]]
    """RootCtl/Root Error Command enables: of ("correctable", "non_fatal", "fatal")."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PciDevice:
    """One PCI function on the way to a GPU, or a GPU itself."""

    address: str
    vendor_id: str
    """Four lower-case hex digits, for example "10de"."""
    device_id: str
    class_code: str
    """Six lower-case hex digits, for example "030200"."""
    port_type: Reading[str]
    """root_port, upstream_port, downstream_port, endpoint, legacy_endpoint, rc_endpoint,
    pcie_to_pci_bridge."""
    driver: Reading[str]
    """"" when no driver is bound."""
    numa_node: Reading[int]
    """-1 when firmware named none."""
    iommu_group: Reading[int]
    """not_supported when the kernel has made no groups."""
    link: Link
    aer: Aer


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuPath:
    """The hops from the root port down to one GPU, both included.

    A single hop means the port above the GPU is out of sight (a passthrough virtual machine).
    """

    gpu: str
    hops: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pci:
    """GPUs as the PCI bus knows them, which is not always how NVML does."""

    devices: Reading[tuple[PciDevice, ...]]
    gpu_paths: Reading[tuple[GpuPath, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Iommu:
    """IOMMU as the kernel runs it (from /sys/class/iommu and the groups, not from log lines)."""

    units: Reading[tuple[str, ...]]
    groups: Reading[int]
    group_types: Reading[Mapping[str, int]]
    """How many groups of each type: identity, DMA, DMA-FQ, blocked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RootBridge:
    """One PCI host bridge and what firmware granted the kernel by _OSC."""

    acpi_name: str
    """For example "PNP0A08:00"; "" when the bridge has no ACPI node."""
    bus: str
    """Domain and first bus, for example "0000:00"."""
    controls: Reading[tuple[str, ...]]
    """Features the kernel controls, for example ("PCIeHotplug", "PME", "AER", "PCIeCapability", "LTR")."""
    evidence: str
    """The kernel log line that says so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AerOwnership:
    """Who owns AER. A counter that nobody owns reads zero for ever."""

    root_bridges: Reading[tuple[RootBridge, ...]]
    noaer: Reading[bool]
    """`pci=noaer` on the command line."""
    ports_native: Reading[bool]
    """`pcie_ports=native` on the command line: the kernel took ownership without asking."""
    firmware_first: Reading[bool]
    """APEI HEST says that firmware handles PCIe errors first; the SEL is then the source."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuPowerUnit:
    """What will set GPU power again after the next boot, when nodeprep's unit is installed."""

    enabled: bool
    """It starts with the machine and its last start went well."""
    limit: str
    """As configured, for example "93%"; "" when the unit leaves limits alone."""
    persistence: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PcieLinkUnit:
    """What will pin GPU links again at the next boot, before the driver loads."""

    enabled: bool
    """It starts with the machine and has not failed in this boot."""
    gen: int | None
    """PCIe generation as configured; None when the unit pins nothing."""
    ports: tuple[str, ...]
    """PCI addresses of the ports it pins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Driver:
    """Kernel drivers and their services."""

    nvidia_version: Reading[str]
    """Version of the loaded kernel module; not_supported when none is loaded."""
    nvidia_open: Reading[bool]
    nvidia_disk_version: Reading[str]
    """Version of the module file that the next load would take (modinfo); differs after an upgrade."""
    nouveau_loaded: Reading[bool]
    persistenced_running: Reading[bool]
    persistenced_no_persistence_mode: Reading[bool]
    """The running daemon was started with --no-persistence-mode (Ubuntu's packaged unit does)."""
    gpu_power_unit: Reading[GpuPowerUnit] = NOT_LOOKED_FOR
    """not_supported where systemd does not run: nothing of nodeprep's can then act at boot."""
    pcie_link_unit: Reading[PcieLinkUnit] = NOT_LOOKED_FOR
    """As gpu_power_unit: not_supported where systemd does not run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialBoot:
    """A trial of kernel arguments that nobody has made permanent or given up yet."""

    id: str
    phase: Literal["staged", "armed", "judged"]
    """staged = its boot entry is written; armed = the next boot takes it; judged = it booted and is good."""
    cmdline: str
    """What its boot entry gives the kernel."""
    booted: bool
    """This boot is the trial."""
    staged_at: str
    outcome: str = ""
    controller: str = ""
    """User and machine that take its steps; empty when they did not say."""
    run: str = ""
    """Id of the run there."""
    since: str = ""
    held_s: int = 0
    """For how many seconds the steps of anybody else are refused; 0 when anybody may go on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BootLoader:
    """What the next boot would do, as the boot loader's own files say."""

    id: Reading[str]
    """Back end that can write it; not_supported for a boot loader that takes its arguments from elsewhere."""
    default_kernel: Reading[str]
    """Kernel release of the default entry; differs from the running one after an upgrade."""
    cmdline: Reading[str]
    """Permanent kernel arguments: those of the default entry."""
    one_shot: Reading[bool]
    """not_supported where an entry for one boot only cannot be trusted, with the reason."""
    boot_free_bytes: Reading[int]
    """Free space on the file system of /boot."""
    trial: Reading[TrialBoot]
    """not_supported when no trial boot is under way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelUse:
    """Uses of the kernel that forbid some arguments, and arguments it did not know."""

    firmware: Reading[str]
    """uefi or bios."""
    secure_boot: Reading[bool]
    lockdown: Reading[str]
    """none, integrity or confidentiality."""
    unknown_arguments: Reading[tuple[str, ...]]
    """Words of the command line of which the kernel said that it does not know them."""
    vfio_devices: Reading[tuple[str, ...]]
    """PCI addresses bound to vfio-pci."""
    virtual_functions: Reading[tuple[str, ...]]
    """PCI addresses of SR-IOV virtual functions that are enabled."""
    confidential: Reading[bool]
    """Confidential computing (SEV, TDX) is in use, as host or as guest."""


def _unknown_boot_loader() -> BootLoader:
    return BootLoader(
        id=NOT_LOOKED_FOR,
        default_kernel=NOT_LOOKED_FOR,
        cmdline=NOT_LOOKED_FOR,
        one_shot=NOT_LOOKED_FOR,
        boot_free_bytes=NOT_LOOKED_FOR,
        trial=NOT_LOOKED_FOR,
    )


def _unknown_kernel_use() -> KernelUse:
    return KernelUse(
        firmware=NOT_LOOKED_FOR,
        secure_boot=NOT_LOOKED_FOR,
        lockdown=NOT_LOOKED_FOR,
        unknown_arguments=NOT_LOOKED_FOR,
        vfio_devices=NOT_LOOKED_FOR,
        virtual_functions=NOT_LOOKED_FOR,
        confidential=NOT_LOOKED_FOR,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LogCursor:
    """Where the kernel log stood, so that a later look can read on from there.

    The log itself is never cleared: it is evidence.
    """

    boot_id: str
    sequence: Reading[int]
    """Sequence number of the last /dev/kmsg record."""
    monotonic_us: Reading[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelEvent:
    """A kernel log record that a check may want: of the NVIDIA driver, of PCIe, or of a host in trouble."""

    sequence: int
    monotonic_us: int
    priority: int
    kind: str
    """xid, nvrm (any other line of the NVIDIA driver), aer, dpc, pciehp, mce, iommu_fault, power_state,
    lockup, hung_task, rcu_stall, oops, oom, other."""
    text: str
    device: str = ""
    """PCI address named by the line, "" when it names none."""
    xid: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelLog:
    """Kernel log records of interest since a cursor (or since boot when none was given)."""

    since: LogCursor | None
    events: Reading[tuple[KernelEvent, ...]]
    lost_records: Reading[int]
    """Records overwritten before they could be read: a gap in the evidence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuPower:
    """Watts. requested is what management software asked for, enforced what the board obeys."""

    limit_w: Reading[float]
    requested_w: Reading[float]
    enforced_w: Reading[float]
    default_w: Reading[float]
    min_w: Reading[float]
    max_w: Reading[float]
    draw_w: Reading[float]


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuLink:
    """The GPU's own view of its PCIe link. Idle GPUs drop to Gen1 legitimately."""

    gen: Reading[int]
    width_lanes: Reading[int]
    max_gen: Reading[int]
    """What GPU and system allow together."""
    gpu_max_gen: Reading[int]
    max_width_lanes: Reading[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuPcieErrors:
    """Counters since driver load: replay counter and NVML fields 94, 95, 169, 173 to 183."""

    replays: Reading[int]
    replay_rollovers: Reading[int]
    l0_to_recovery: Reading[int]
    correctable: Reading[int]
    naks_received: Reading[int]
    receiver_errors: Reading[int]
    bad_tlp: Reading[int]
    naks_sent: Reading[int]
    bad_dllp: Reading[int]
    non_fatal: Reading[int]
    fatal: Reading[int]
    unsupported_requests: Reading[int]
    lcrc: Reading[int]
    lane: Reading[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuEcc:
    """ECC mode and totals. Volatile counts since driver load, aggregate over the board's life."""

    enabled: Reading[bool]
    pending_enabled: Reading[bool]
    volatile_corrected: Reading[int]
    volatile_uncorrected: Reading[int]
    aggregate_corrected: Reading[int]
    aggregate_uncorrected: Reading[int]
    sram_threshold_exceeded: Reading[bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class RemapHistogram:
    """Banks by spare rows left."""

    max: int
    high: int
    partial: int
    low: int
    none: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuRemap:
    """Row remapping (Ampere and later data-centre parts)."""

    correctable_rows: Reading[int]
    uncorrectable_rows: Reading[int]
    pending: Reading[bool]
    failure: Reading[bool]
    histogram: Reading[RemapHistogram]
    channel_repair_pending: Reading[bool]
    tpc_repair_pending: Reading[bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuClocks:
    """Clocks in MHz; `event_reasons` is NVML's bitmask, to be tested as a mask, never by equality."""

    sm_mhz: Reading[int]
    memory_mhz: Reading[int]
    max_sm_mhz: Reading[int]
    max_memory_mhz: Reading[int]
    event_reasons: Reading[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuTemperature:
    """Degrees Celsius. T.Limit values count degrees left and must not be mixed with absolute ones."""

    gpu_c: Reading[int]
    memory_c: Reading[int]
    margin_c: Reading[int]
    """Degrees left before the GPU slows down (T.Limit)."""
    slowdown_c: Reading[int]
    shutdown_c: Reading[int]
    gpu_max_c: Reading[int]
    memory_max_c: Reading[int]
    slowdown_tlimit_c: Reading[int]
    shutdown_tlimit_c: Reading[int]
    gpu_max_tlimit_c: Reading[int]
    memory_max_tlimit_c: Reading[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class NvLink:
    """One NVLink of a GPU."""

    index: int
    active: Reading[bool]
    replay_errors: Reading[int]
    recovery_errors: Reading[int]
    crc_errors: Reading[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fabric:
    """NVLink fabric registration (Hopper and later on HGX/NVL baseboards)."""

    state: Literal["not_supported", "not_started", "in_progress", "completed"]
    status: int
    """nvmlReturn_t of the registration; 0 is success."""
    health_mask: int | None
    health_summary: int | None = None
    """NVML_GPU_FABRIC_HEALTH_SUMMARY_*: 0 not supported, 1 healthy, 2 unhealthy, 3 limited capacity.
    None from drivers whose structure has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """One GPU as NVML knows it."""

    pci_address: str
    index: int
    uuid: Reading[str]
    serial: Reading[str]
    name: Reading[str]
    board_part_number: Reading[str]
    vbios_version: Reading[str]
    inforom_version: Reading[str]
    inforom_valid: Reading[bool]
    architecture: Reading[str]
    pci_device_id: Reading[str]
    """Device and vendor as "10de:2335"."""
    memory_total_bytes: Reading[int]
    bar1_total_bytes: Reading[int]
    persistence: Reading[bool]
    compute_processes: Reading[int]
    virtualization: Reading[str]
    """none, passthrough, vgpu, host_vgpu, host_vsga."""
    mig_enabled: Reading[bool]
    mig_pending: Reading[bool]
    gsp_enabled: Reading[bool]
    gsp_version: Reading[str]
    recovery_action: Reading[int]
    """NVML field 230: 0 none, 1 GPU reset, 2 node reboot, 3 drain P2P, 4 drain and reset, ..."""
    power: GpuPower
    link: GpuLink
    pcie_errors: GpuPcieErrors
    ecc: GpuEcc
    remap: GpuRemap
    clocks: GpuClocks
    temperature: GpuTemperature
    nvlinks: Reading[tuple[NvLink, ...]]
    fabric: Reading[Fabric]


@dataclass(frozen=True, slots=True, kw_only=True)
class Nvml:
    """All that NVML said, from a child process with a deadline.

    `gpus` is an error when NVML hung or did not start; the text names the call it hung in. GPUs
    that were complete by then are kept in `partial` as evidence, never as the list.

    `lost` are NVML's words on GPUs it answers "GPU is lost" for. One that it cannot open any more has
    no address left and is not in `gpus`.
    """

    driver_version: Reading[str]
    library_version: Reading[str]
    cuda_version: Reading[str]
    gpus: Reading[tuple[Gpu, ...]]
    partial: tuple[Gpu, ...] = ()
    lost: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFacts:
    """The whole document."""

    host: str
    """Inventory name; the controller fills it in."""
    hostname: str
    simulated: bool
    """True when any part was not the real machine (a redirected root, stand-in device ids)."""
    collected_at: str
    collector: Collector
    boot: Boot
    cpu: Cpu
    memory: Memory
    dmi: Dmi
    nics: Reading[tuple[Nic, ...]]
    pci: Pci
    iommu: Iommu
    aer_ownership: AerOwnership
    driver: Driver
    log_cursor: LogCursor
    kernel_log: KernelLog
    nvml: Nvml
    boot_loader: BootLoader = field(default_factory=_unknown_boot_loader)
    kernel_use: KernelUse = field(default_factory=_unknown_kernel_use)
    disks: Reading[tuple[str, ...]] = NOT_LOOKED_FOR
    """Names of whole disks with hardware behind them, for example "nvme0n1"."""
    bios: Reading[BiosFacts] = NOT_LOOKED_FOR
    """The controller fills it in, from the node's BMC; not_supported where the inventory names none that
    has a path to BIOS settings."""
    sensors: Reading[BmcSensors] = NOT_ASKED_FOR
    """Evidence, and no part of any verdict: `inspect` fills it in, from the node's BMC; not_supported where
    the inventory names none."""
    schema: Literal["nodeprep.facts/1"] = field(default="nodeprep.facts/1")

    def pci_device(self, address: str) -> PciDevice | None:
        """The PCI device at an address, if it is one of those collected."""
        return next((d for d in self.pci.devices.value or () if d.address == address), None)
