"""Facts of a node in a fixture run."""

from __future__ import annotations

from typing import Any

from nodeprep.model.facts import (
    Aer,
    AerOwnership,
    Boot,
    Collector,
    Cpu,
    Dmi,
    Driver,
    Gpu,
    GpuClocks,
    GpuEcc,
    GpuLink,
    GpuPath,
    GpuPcieErrors,
    GpuPower,
    GpuRemap,
    GpuTemperature,
    Iommu,
    KernelEvent,
    KernelLog,
    Link,
    LogCursor,
    Memory,
    NodeFacts,
    Nvml,
    Pci,
    PciDevice,
    RootBridge,
)
from nodeprep.model.reading import Reading

ok = Reading.ok

LIMIT_W = 651.0


def address(gpu: int) -> str:
    """PCI address of a GPU by its place."""
    return f"0000:{0x17 + gpu * 0x11:02x}:00.0"


def port(gpu: int) -> str:
    """PCI address of the root port above a GPU."""
    return f"0000:{0x16 + gpu * 0x11:02x}:01.0"


def aer(correctable: dict[str, int] | None = None, *, root: bool = False) -> Aer:
    """Counters of one device."""
    none: Reading[Any] = Reading.not_supported("not a root port")
    return Aer(
        correctable=ok({"RxErr": 0, "BadTLP": 0, "BadDLLP": 0, "Rollover": 0, **(correctable or {})}),
        non_fatal=ok({"DLP": 0, "SDES": 0}),
        fatal=ok({"DLP": 0, "SDES": 0}),
        reporting=ok(("correctable", "non_fatal", "fatal")),
        rootport_correctable=ok(sum((correctable or {}).values())) if root else none,
        rootport_non_fatal=ok(0) if root else none,
        rootport_fatal=ok(0) if root else none,
        rootport_reporting=ok(("correctable", "non_fatal", "fatal")) if root else none,
    )


def link(width: int = 16) -> Link:
    """A Gen4 link."""
    return Link(
        cap_speed_gts=ok(32.0),
        cap_width_lanes=ok(16),
        sta_speed_gts=ok(16.0),
        sta_width_lanes=ok(width),
        target_speed_gts=ok(16.0),
        aspm_supported=ok(("L1",)),
        aspm_enabled=ok(()),
    )


def pci_device(at: str, *, width: int = 16, errors: dict[str, int] | None = None) -> PciDevice:
    """A GPU, or a root port when the address says so."""
    root = at.endswith(":01.0")
    return PciDevice(
        address=at,
        vendor_id="8086" if root else "10de",
        device_id="352a" if root else "2335",
        class_code="060400" if root else "030200",
        port_type=ok("root_port" if root else "endpoint"),
        driver=ok("pcieport" if root else "nvidia"),
        numa_node=ok(0),
        iommu_group=Reading.not_supported("no IOMMU groups"),
        link=link(width),
        aer=aer(errors, root=root),
    )


def gpu_facts(gpu: int) -> Gpu:
    """What NVML says of one GPU."""
    none: Reading[Any] = Reading.not_supported("NVML_ERROR_NOT_SUPPORTED")
    zero: Reading[int] = ok(0)
    return Gpu(
        pci_address=address(gpu),
        index=gpu,
        uuid=ok(uuid(gpu)),
        serial=ok(f"16516230{gpu:05d}"),
        name=ok("NVIDIA H200"),
        board_part_number=ok("900-2G520-0280-000"),
        vbios_version=ok("96.00.BC.00.03"),
        inforom_version=ok("G520.0280.00.05"),
        inforom_valid=ok(True),
        architecture=ok("hopper"),
        pci_device_id=ok("10de:2335"),
        memory_total_bytes=ok(150754820096),
        bar1_total_bytes=ok(274877906944),
        persistence=ok(True),
        compute_processes=zero,
        virtualization=ok("none"),
        mig_enabled=ok(False),
        mig_pending=ok(False),
        gsp_enabled=ok(True),
        gsp_version=ok("580.159.03"),
        recovery_action=zero,
        power=GpuPower(
            limit_w=ok(LIMIT_W),
            requested_w=ok(LIMIT_W),
            enforced_w=ok(LIMIT_W),
            default_w=ok(700.0),
            min_w=ok(200.0),
            max_w=ok(700.0),
            draw_w=ok(78.0),
        ),
        link=GpuLink(gen=ok(4), width_lanes=ok(16), max_gen=ok(4), gpu_max_gen=ok(5), max_width_lanes=ok(16)),
        pcie_errors=GpuPcieErrors(
            replays=zero,
            replay_rollovers=zero,
            l0_to_recovery=ok(31),
            correctable=zero,
            naks_received=zero,
            receiver_errors=zero,
            bad_tlp=zero,
            naks_sent=zero,
            bad_dllp=zero,
            non_fatal=zero,
            fatal=zero,
            unsupported_requests=zero,
            lcrc=zero,
            lane=zero,
        ),
        ecc=GpuEcc(
            enabled=ok(True),
            pending_enabled=ok(True),
            volatile_corrected=zero,
            volatile_uncorrected=zero,
            aggregate_corrected=zero,
            aggregate_uncorrected=zero,
            sram_threshold_exceeded=ok(False),
        ),
        remap=GpuRemap(
            correctable_rows=zero,
            uncorrectable_rows=zero,
            pending=ok(False),
            failure=ok(False),
            histogram=none,
            channel_repair_pending=ok(False),
            tpc_repair_pending=ok(False),
        ),
        clocks=GpuClocks(
            sm_mhz=ok(345),
            memory_mhz=ok(3201),
            max_sm_mhz=ok(1980),
            max_memory_mhz=ok(3201),
            event_reasons=ok(1),
        ),
        temperature=GpuTemperature(
            gpu_c=ok(34),
            memory_c=ok(38),
            margin_c=ok(53),
            slowdown_c=ok(87),
            shutdown_c=ok(92),
            gpu_max_c=ok(87),
            memory_max_c=ok(95),
            slowdown_tlimit_c=none,
            shutdown_tlimit_c=none,
            gpu_max_tlimit_c=none,
            memory_max_tlimit_c=none,
        ),
        nvlinks=none,
        fabric=none,
    )


def uuid(gpu: int) -> str:
    """A GPU's UUID."""
    return f"GPU-1b2c3d4e-5f60-4711-9abc-00000000{gpu:04x}"


def facts(
    host: str,
    gpus: int,
    *,
    after: bool,
    absent: tuple[int, ...] = (),
    hung: bool = False,
    burst: int | None = None,
    events: tuple[KernelEvent, ...] = (),
) -> NodeFacts:
    """Facts of one node. `burst` is the GPU below the port with corrected errors after the load."""
    text = ok("")
    cursor = LogCursor(boot_id="8f1c", sequence=ok(2210), monotonic_us=ok(620_000_000))
    devices = tuple(
        pci_device(
            at, errors={"RxErr": 1412, "BadDLLP": 37} if after and at == port(gpu) and gpu == burst else None
        )
        for gpu in range(gpus)
        for at in (port(gpu), address(gpu))
    )
    seen = tuple(gpu_facts(gpu) for gpu in range(gpus) if gpu not in absent)
    return NodeFacts(
        host=host,
        hostname=host,
        simulated=True,
        collected_at="2026-11-30T10:02:00Z",
        collector=Collector(version="0.1.0", python="3.10.12", euid=0, duration_s=0.8),
        boot=Boot(
            boot_id=ok("8f1c"),
            uptime_s=ok(620.0),
            kernel_release=ok("6.8.0-60-generic"),
            cmdline=ok("BOOT_IMAGE=/vmlinuz pcie_aspm=off iommu=off pcie_ports=native"),
        ),
        cpu=Cpu(
            model=ok("INTEL(R) XEON(R) PLATINUM 8570"),
            present=ok(224),
            online=ok(224),
            dmi_threads=ok(224),
            hypervisor=ok(False),
        ),
        memory=Memory(total_bytes=ok(2164218347520), dmi_installed_bytes=ok(2199023255552)),
        dmi=Dmi(
            sys_vendor=ok("Supermicro"),
            product_name=ok("SYS-821GE-TNHR"),
            product_serial=ok(f"S50{host[-2:]}"),
            product_uuid=text,
            board_vendor=text,
            board_name=text,
            board_serial=text,
            bios_vendor=text,
            bios_version=ok("2.4"),
            bios_date=text,
        ),
        nics=ok(()),
        pci=Pci(
            devices=ok(devices),
            gpu_paths=ok(
                tuple(GpuPath(gpu=address(gpu), hops=(port(gpu), address(gpu))) for gpu in range(gpus))
            ),
        ),
        iommu=Iommu(units=ok(()), groups=ok(0), group_types=ok({})),
        aer_ownership=AerOwnership(
            root_bridges=ok(
                tuple(
                    RootBridge(
                        acpi_name=f"PNP0A08:{gpu:02x}",
                        bus=port(gpu)[:7],
                        controls=ok(("PCIeHotplug", "PME", "AER", "PCIeCapability")),
                        evidence="acpi PNP0A08: _OSC: OS now controls [PCIeHotplug PME AER PCIeCapability]",
                    )
                    for gpu in range(gpus)
                )
            ),
            noaer=ok(False),
            ports_native=ok(True),
            firmware_first=ok(False),
        ),
        driver=Driver(
            nvidia_version=ok("580.159.03"),
            nvidia_open=ok(True),
            nvidia_disk_version=ok("580.159.03"),
            nouveau_loaded=ok(False),
            persistenced_running=ok(True),
            persistenced_no_persistence_mode=ok(False),
        ),
        log_cursor=cursor,
        kernel_log=KernelLog(since=cursor if after else None, events=ok(events), lost_records=ok(0)),
        nvml=Nvml(
            driver_version=ok("580.159.03"),
            library_version=ok("580.159.03"),
            cuda_version=ok("13.0"),
            gpus=Reading.error("killed after 30.0 s in nvmlDeviceGetTemperature on GPU 3 (0000:4a:00.0)")
            if hung
            else ok(seen),
            partial=seen[:3] if hung else (),
        ),
    )
