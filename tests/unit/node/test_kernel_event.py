"""Lines of all driver and kernel eras; see the log formats each case names."""

import pytest

from nodeprep.node.kernel_event import Found, classify


@pytest.mark.parametrize(
    ("text", "device", "code"),
    [
        ("NVRM: Xid (0000:03:00): 14, Channel 00000001", "0000:03:00.0", 14),
        ("NVRM: Xid (PCI:0000:09:00): 79, pid=0, GPU has fallen off the bus.", "0000:09:00.0", 79),
        ("NVRM: Xid (PCI:0000:09:00): 63, pid=1896, Row Remapper: New row", "0000:09:00.0", 63),
        (
            "NVRM: Xid (PCI:0008:06:00): 31, pid='<unknown>', name=<unknown>, Ch 00000010, intr 00000000.",
            "0008:06:00.0",
            31,
        ),
        ("NVRM: Xid (PCI:0000:17:00): 79, GPU has fallen off the bus.", "0000:17:00.0", 79),
        ("NVRM: Xid (PCI:0000:01:00 GPU-I:05): 13, Graphics Exception", "0000:01:00.0", 13),
        (
            "NVRM: Xid (PCI:0000:01:00 GPU-I:05 GPU-CI:00): 43, pid=7, name=a:(b), [c], Ch 8",
            "0000:01:00.0",
            43,
        ),
    ],
)
def test_xid_lines_of_every_era(text, device, code):
    assert classify(text) == Found("xid", device, code)


def test_an_xid_line_in_an_unknown_form_is_still_an_xid():
    assert classify("NVRM: Xid <GPU 3>: 79 something new") == Found("xid", "", None)


@pytest.mark.parametrize(
    ("text", "kind", "device"),
    [
        ("pcieport 0000:00:1c.5: AER: Corrected error received: id=00e5", "aer", "0000:00:1c.5"),
        (
            "pcieport 0000:00:1c.5: PCIe Bus Error: severity=Corrected, type=Physical Layer, id=00e5",
            "aer",
            "0000:00:1c.5",
        ),
        (
            "pcieport 0000:00:1c.5:   device [8086:9d15] error status/mask=00000001/00002000",
            "aer",
            "0000:00:1c.5",
        ),
        ("pcieport 0000:00:1c.5:    [ 0] RxErr                  (First)", "aer", "0000:00:1c.5"),
        ("pcieport 0000:00:1c.5: AER:    [12] Timeout", "aer", "0000:00:1c.5"),
        (
            "pcieport 0000:15:01.0: AER: Multiple Correctable error message received from 0000:1b:00.0",
            "aer",
            "0000:15:01.0",
        ),
        ("nvidia 0000:63:00.0: AER: can't recover (no error_detected callback)", "aer", "0000:63:00.0"),
        ("nvidia 0000:63:00.0:   TLP Header: 4a000001 00000010 00000000 00000000", "aer", "0000:63:00.0"),
        ("nvidia 0000:63:00.0: aer_status: 0x00001000, aer_mask: 0x00000000", "aer", "0000:63:00.0"),
        ("aer_ratelimit: 30 callbacks suppressed", "aer", ""),
        ("pcieport 0000:15:01.0: DPC: containment event, status:0x1f01 source:0x0000", "dpc", "0000:15:01.0"),
        ("dpc 0000:15:01.0:pcie010: DPC containment event, status:0x1f01", "dpc", "0000:15:01.0"),
        ("pcieport 0000:15:01.0: pciehp: Slot(12): Link Down", "pciehp", "0000:15:01.0"),
        ("pciehp 0000:15:01.0:pcie004: Slot(12): Card not present", "pciehp", "0000:15:01.0"),
        (
            "pci 0000:1b:00.0: 252.048 Gb/s available PCIe bandwidth, limited by 16.0 GT/s PCIe x16 link",
            "other",
            "0000:1b:00.0",
        ),
        (
            "pcieport 0000:17:02.0: broken device, retraining non-functional downstream link at 2.5GT/s",
            "other",
            "0000:17:02.0",
        ),
        (
            "nvidia-nvswitch3: SXid (PCI:0000:c4:00.0): 20034, Fatal, Link 30 LTSSM Fault Up",
            "other",
            "0000:c4:00.0",
        ),
        ("NVRM: GPU 0000:01:00.0: RmInitAdapter failed! (0x62:0x65:2027)", "nvrm", "0000:01:00.0"),
        ("NVRM: GPU at PCI:0000:61:00: GPU-00000000-0000-0000-0000-000000000000", "nvrm", "0000:61:00.0"),
        ("NVRM: The NVIDIA GPU 0000:b3:00.0\nNVRM: fallen off the bus", "nvrm", "0000:b3:00.0"),
        ("nvidia 0000:17:00.0: probe with driver nvidia failed with error -1", "nvrm", "0000:17:00.0"),
        ("nvidia-peermem nv_get_p2p_free_callback:127 ERROR detected invalid context", "nvrm", ""),
        ("[drm:nv_drm_load [nvidia_drm]] *ERROR* [nvidia-drm] [GPU ID 0x00001800] Failed", "nvrm", ""),
        ("nvidia-nvlink: Nvlink Core is being initialized, major device number 237", "nvrm", ""),
        (
            "nvidia 0000:63:00.0: Unable to change power state from D3cold to D0, device inaccessible",
            "power_state",
            "0000:63:00.0",
        ),
        (
            "nvidia 0000:63:00.0: can't change power state from D3cold to D0 (config space inaccessible)",
            "power_state",
            "0000:63:00.0",
        ),
        (
            "DMAR: [DMA Write NO_PASID] Request device [63:00.0] fault addr 0xfe000000 [fault reason 0x05]",
            "iommu_fault",
            "",
        ),
        (
            "DMAR: [DMA Read] Request device [63:00.0] fault addr fe000000 [fault reason 06]",
            "iommu_fault",
            "",
        ),
        ("DMAR: DRHD: handling fault status reg 2", "iommu_fault", ""),
        (
            "AMD-Vi: Event logged [IO_PAGE_FAULT device=0000:63:00.0 domain=0x10 address=0xfe flags=0x0020]",
            "iommu_fault",
            "0000:63:00.0",
        ),
        (
            "AMD-Vi: Event logged [IO_PAGE_FAULT device=63:00.0 domain=0x0010 address=0xfe flags=0x0020]",
            "iommu_fault",
            "",
        ),
        (
            "nvidia 0000:63:00.0: AMD-Vi: Event logged [IO_PAGE_FAULT domain=0x0010 address=0xfe flags=0x0]",
            "iommu_fault",
            "0000:63:00.0",
        ),
        ("watchdog: BUG: soft lockup - CPU#12 stuck for 23s! [python3:4711]", "lockup", ""),
        ("NMI watchdog: Watchdog detected hard LOCKUP on cpu 3", "lockup", ""),
        ("watchdog: CPU3: Watchdog detected hard LOCKUP on cpu 3", "lockup", ""),
        ("INFO: task nvidia-smi:4711 blocked for more than 120 seconds.", "hung_task", ""),
        ("rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:", "rcu_stall", ""),
        ("INFO: rcu_sched self-detected stall on CPU", "rcu_stall", ""),
        ("rcu: INFO: rcu_sched detected expedited stalls on CPUs/tasks: { 3-... }", "rcu_stall", ""),
        ("Out of memory: Killed process 4711 (python3) total-vm:912345kB", "oom", ""),
        ("Memory cgroup out of memory: Killed process 4711 (python3) total-vm:1kB", "oom", ""),
        ("python3 invoked oom-killer: gfp_mask=0x100cca(GFP_HIGHUSER_MOVABLE), order=0", "oom", ""),
        ("BUG: unable to handle page fault for address: ffffffffc0000000", "oops", ""),
        ("{1}[Hardware Error]:   device_id: 0000:5e:00.0", "other", "0000:5e:00.0"),
        ("BERT: Error records from previous boot:", "other", ""),
        ("mce: [Hardware Error]: CPU 3: Machine Check: 0 Bank 7: dc00000000010090", "mce", ""),
        ("[Hardware Error]: Corrected error, no action required.", "mce", ""),
        ("EDAC MC0: 1 CE memory read error on CPU_SrcID#0", "mce", ""),
    ],
)
def test_kind_and_device(text, kind, device):
    assert classify(text) == Found(kind, device, None)


@pytest.mark.parametrize(
    "text",
    [
        "pcieport 0000:15:01.0: AER: enabled with IRQ 120",
        "aer 0000:00:01.0:pcie002: AER enabled with IRQ 24",
        "pcieport 0000:15:01.0: DPC: enabled with IRQ 120",
        "pcieport 0000:15:01.0: DPC: error containment capabilities: Int Msg #0, RPExt+",
        "pcieport 0000:15:01.0: pciehp: Slot #12 AttnBtn- PwrCtrl- MRL-",
        "pcieport 0000:15:01.0: PME: Signaling with IRQ 120",
        "mce: CPU0: Thermal monitoring enabled (TM1)",
        "DMAR: Host address width 46",
        "AMD-Vi: Interrupt remapping enabled",
        "rcu: Hierarchical RCU implementation.",
        "nvme 0000:05:00.0: platform quirk: setting simple suspend",
        "usb 1-1: new high-speed USB device",
        "pci 0000:1b:00.0: [10de:2330] type 00 class 0x030200 PCIe Endpoint",
        "python3[4242]: saw NVRM: Xid (PCI:0000:17:00): 79 in the journal",
        "",
    ],
)
def test_announcements_and_other_lines_are_left_out(text):
    assert classify(text) is None
