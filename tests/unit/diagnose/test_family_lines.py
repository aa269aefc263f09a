"""One line of each family: what it becomes, and that no line breaks a decoder."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodeprep.diagnose.correlate import incidents
from nodeprep.diagnose.decoders import all_decoders
from nodeprep.diagnose.engine import wanted_words
from nodeprep.diagnose.event import Event
from nodeprep.diagnose.line import Line

NEEDLES = [needle for decoder in all_decoders().values() for needle in decoder.needles]


def events(*texts: str) -> list[Event]:
    lines = [Line(source="log", number=n, text=text, raw=text) for n, text in enumerate(texts, 1)]
    return [event for decoder in all_decoders().values() for event in decoder.decode(iter(lines))]


FAMILIES = {
    "NVRM: GPU 0000:01:00.0: RmInitAdapter failed! (0x62:0x65:2027)": ("gpu.init_failed", "0000:01:00.0"),
    "NVRM: GPU 0000:61:00.0: GPU has fallen off the bus.": ("gpu.fallen_off_bus_noted", "0000:61:00.0"),
    "Unable to determine the device handle for GPU 0000:B3:00.0: GPU is lost.  Reboot the system to "
    "recover": ("nvml.gpu_lost", "0000:b3:00.0"),
    "NVRM: nvAssertOkFailedNoLog: Assertion failed: Reset required [NV_ERR_RESET_REQUIRED] (0x00000062)": (
        "gpu.reset_required",
        "",
    ),
    "NVRM: Rate limiting GSP RPC error prints for GPU at PCI:0000:01:00 (printing 1 of every 30).": (
        "gsp.errors_limited",
        "0000:01:00.0",
    ),
    "NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  570.195.03  Release Build": (
        "driver.loaded",
        "",
    ),
    "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.90.07  Fri May 31 09:35:42 UTC 2024": (
        "driver.loaded",
        "",
    ),
    "NVRM: API mismatch: the client has the version 550.120, but": ("driver.api_mismatch", ""),
    "vfio-pci 0000:10:00.0: not ready 65535ms after FLR; giving up": ("gpu.never_ready", "0000:10:00.0"),
    "A bus fatal error was detected on a component at bus 10 device 3 function 1.": (
        "sel.pcie_fatal",
        "0000:0a:03.1",
    ),
    "A Uncorrectable Bus Error has occurred on bus PCIs.": ("sel.pcie_fatal", ""),
    "DMAR: VT-d detected Invalidation Time-out Error: SID 4100": ("iommu.silent_device", "0000:41:00.0"),
    "modprobe: ERROR: could not insert 'nvidia': Key was rejected by service": ("driver.key_rejected", ""),
    "nvidia-nvswitch3: SXid (PCI:0000:c4:00.0): 20034, Fatal, Link 30 LTSSM Fault Up": (
        "sxid.20034",
        "0000:c4:00.0",
    ),
    "pcieport 0000:60:01.1: DPC: containment event, status:0x1f01 source:0x0000": (
        "dpc.containment",
        "0000:60:01.1",
    ),
    "pcieport 0000:60:01.1: DPC: containment event, status:0x1f01: unmasked uncorrectable error detected": (
        "dpc.containment",
        "0000:60:01.1",
    ),
    "dpc 0000:60:01.1:pcie010: DPC containment event, status:0x1f01 source:0x0000": (
        "dpc.containment",
        "0000:60:01.1",
    ),
    "pcieport 0000:60:01.1: pciehp: Slot(12): Link Down": ("pciehp.link_down", "0000:60:01.1"),
    "pciehp 0000:60:01.1:pcie004: Slot(12): Link Down": ("pciehp.link_down", "0000:60:01.1"),
    "pcieport 0000:60:01.1: pciehp: Slot(12): Card not present": ("pciehp.card_not_present", "0000:60:01.1"),
    "pcieport 0000:60:01.1: pciehp: Slot(12): Link Down/Up ignored (recovered by DPC)": (
        "pciehp.link_flap_ignored",
        "0000:60:01.1",
    ),
    "pcieport 0000:60:01.1: broken device, retraining non-functional downstream link at 2.5GT/s": (
        "link.retrained_at_gen1",
        "0000:60:01.1",
    ),
    "pcieport 0000:60:01.1: retraining failed": ("link.retrain_failed", "0000:60:01.1"),
    "pci 0000:3a:00.0: PCI bridge to [bus 3b-42]": ("pci.bridge", "0000:3a:00.0"),
    "pci 10000:e0:06.0: PCI bridge to [bus e1]": ("pci.bridge", "10000:e0:06.0"),
    "pci 0000:05:00.0: BAR 1: no space for [mem size 0x1000000000 64bit pref]": (
        "pci.bar_unassigned",
        "0000:05:00.0",
    ),
    "EDAC MC3: 1 UE memory read error on CPU_SrcID#1_MC#1_Chan#2_DIMM#0 (channel:2 slot:0)": (
        "edac.uncorrected",
        "",
    ),
    "EDAC MC0: 3 CE memory read error on CPU_SrcID#0_MC#0_Chan#0_DIMM#0": ("edac.corrected", ""),
    "mce: [Hardware Error]: CPU 4: Machine Check: 0 Bank 1: be00000000800400": ("mce.uncorrected", ""),
    "mce: [Hardware Error]: CPU 4: Machine Check: 0 Bank 7: 8c00004000010091": ("mce.corrected", ""),
    "DMAR: [DMA Write] Request device [65:00.0] fault addr f0000 [fault reason 05] PTE Write access "
    "is not set": ("iommu.fault", "0000:65:00.0"),
    "nvidia 0000:41:00.0: AMD-Vi: Event logged [IO_PAGE_FAULT domain=0x0021 address=0xd0000000 "
    "flags=0x0020]": ("iommu.fault", "0000:41:00.0"),
    "INFO: task nvidia-smi:4242 blocked for more than 120 seconds.": ("host.task_hung", ""),
    "Out of memory: Killed process 4242 (python3) total-vm:9kB": ("host.out_of_memory", ""),
    "RuntimeError: CUDA error: unspecified launch failure": ("cuda.launch_failed", ""),
    "RuntimeError: CUDA error: device-side assert triggered": ("cuda.assert", ""),
    "cuda runtime error (802) : system not yet initialized at THCGeneral.cpp:50": (
        "cuda.system_not_ready",
        "",
    ),
    'CUDA error at bandwidthTest.cu:256 code=802(cudaErrorSystemNotReady) "cudaSetDevice"': (
        "cuda.system_not_ready",
        "",
    ),
    "failed call to cuInit: CUDA_ERROR_UNKNOWN: unknown error": ("cuda.unknown", ""),
    "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate": (
        "cuda.out_of_memory",
        "",
    ),
    "RuntimeError: CUDA error: uncorrectable NVLink error detected during the execution": (
        "cuda.nvlink_uncorrectable",
        "",
    ),
    "node: Test CUDA failure common.cu:1007 'OS call failed or operation not supported on this OS'": (
        "cuda.os_call_failed",
        "",
    ),
    "NCCL WARN Call to connect returned Connection refused; remote process exited or there was a "
    "network error": ("nccl.remote_gone", ""),
    "Failed to initialize NVML: Unknown Error": ("nvml.unknown_error", ""),
    "WARNING: infoROM is corrupted at gpu 0000:04:00.0": ("nvml.inforom_corrupted", "0000:04:00.0"),
    "nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.4": (
        "container.driver_too_old",
        "",
    ),
    "Power Supply #0x74 | Failure detected | Asserted": ("sel.power_supply", ""),
    "Power Supply #0x74 | Failure detected | Deasserted": ("sel.ended", ""),
    "Critical Interrupt #0x13 | PCI SERR | Asserted": ("sel.pcie_fatal", ""),
    "smpboot: CPU 112 has invalid APIC ID 100. Aborting bringup": ("cpu.not_started", ""),
    'args="ro iommu=pt"': ("boot.entry", ""),
    'DCGM_FI_DEV_XID_ERRORS{gpu="0",UUID="GPU-1",pci_bus_id="00000000:17:00.0"} 79': (
        "xid.79",
        "0000:17:00.0",
    ),
}


@pytest.mark.parametrize("text", FAMILIES)
def test_what_a_line_becomes(text: str) -> None:
    kind, device = FAMILIES[text]
    assert (kind, device) in [(event.kind, event.device) for event in events(text)]


@pytest.mark.parametrize("text", FAMILIES)
def test_the_prefilter_lets_it_through(text: str) -> None:
    assert any(needle in text.encode() for needle in NEEDLES)


@pytest.mark.parametrize(
    "text",
    [
        "nvidia: module verification failed: signature and/or required key missing - tainting kernel",
        "nvidia: loading out-of-tree module taints kernel.",
        "NVML: Unable to retrieve NVLink information as all links are inActive",
        "CUDA kernel errors might be asynchronously reported at some other API call",
        "For debugging consider passing CUDA_LAUNCH_BLOCKING=1.",
        "Is CUDA available: True",
        "pcieport 0000:00:1c.0: AER: enabled with IRQ 122",
        "Voltage #0x74 | State Deasserted | Deasserted",
        "EDAC MC0: Giving out device to module amd64_edac controller F19h_M20h: DEV 0000:00:18.3 (INTERRUPT)",
        "pci 0000:00:1c.0: bridge window [io  size 0x1000]: can't assign; no space",
        'DCGM_FI_DEV_XID_ERRORS{gpu="0"} 0',
    ],
)
def test_what_is_no_event(text: str) -> None:
    assert events(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "mlx5_core 0000:9a:00.0 ens3f0: Link up",
        'audit: type=1400 audit(1700000000.1:2): apparmor="STATUS" operation="profile_replace" pid=3',
        "docker0: port 1(veth1) entered blocking state",
        "IPv6: ADDRCONF(NETDEV_CHANGE): veth1: link becomes ready",
        "EXT4-fs (nvme0n1p2): mounted filesystem with ordered data mode. Quota mode: none.",
        "usb 1-1: new high-speed USB device number 2 using xhci_hcd",
        "perf: interrupt took too long (2501 > 2500), lowering kernel.perf_event_max_sample_rate",
        "[UFW BLOCK] IN=ens3 OUT= SRC=10.0.0.1 DST=10.0.0.2 LEN=40 TOS=0x00 TTL=243 PROTO=TCP SPT=1",
        "systemd[1]: Started Session 1234 of User root.",
        "CRON[1234]: (root) CMD (command -v debian-sa1 > /dev/null && debian-sa1 1 1)",
        "nfs: server 10.0.0.1 not responding, still trying",
        "XFS (dm-0): Mounting V5 Filesystem",
        "bond0: (slave ens1f0): link status definitely up, 100000 Mbps full duplex",
    ],
)
def test_the_prefilter_leaves_out_what_a_healthy_node_says_all_day(text: str) -> None:
    assert [word for word in wanted_words() if word in text.encode()] == []


def test_needles_are_few_and_long_enough_to_be_rare() -> None:
    assert len(set(NEEDLES)) < 200
    assert min(map(len, NEEDLES)) >= 3


_PIECES = st.sampled_from(
    [
        *(needle.decode() for needle in NEEDLES),
        *FAMILIES,
        "0000:02:00.0",
        "(",
        ")",
        "{",
        "|",
        ": ",
        "0x",
        "9" * 30,
        "٣",
        "²",
        "ffffffff:ff:ff.7",
        "severity=",
        "1.2.3",
        "e+99",
        "\u0000",
    ]
)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.lists(st.one_of(_PIECES, st.text(max_size=20)), max_size=8).map("".join), max_size=6))
def test_no_line_breaks_a_decoder_or_a_rule(texts: list[str]) -> None:
    for incident in incidents(events(*texts)):
        assert incident.evidence
        assert incident.summary


def test_an_endless_line_does_not_stall() -> None:
    for piece in (
        "fabric manager version 1 does not match ",
        "NVRM: Xid (",
        "pid=1, name=a, ",
        "[Hardware Error]: ",
    ):
        events(piece * 20_000)
