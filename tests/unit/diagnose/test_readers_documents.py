"""Outputs of tools: what they say of each GPU and each function, as events."""

from __future__ import annotations

from typing import Any

import pytest
from reading import items, lines, reader_of

from nodeprep.diagnose.event import Event
from nodeprep.diagnose.reader import Remark


def events(reader: str, text: str) -> dict[str, Event]:
    """The events of a document by kind."""
    return {item.kind: item for item in items(reader, text) if isinstance(item, Event)}


SMI_Q = """==============NVSMI LOG==============

Timestamp                                 : Sat Sep  5 15:01:47 2026
Driver Version                            : 580.178.04

Attached GPUs                             : 1
GPU 0000000B:9C:00.0
    Product Name                          : NVIDIA A100 80GB PCIe
    GPU Recovery Action                   : GPU Reset Required
    PCI
        GPU Link Info
            PCIe Generation
                Max                       : 4
                Current                   : 1
            Link Width
                Max                       : 16x
                Current                   : 16x
    Clocks Event Reasons
        HW Power Brake Slowdown           : Active
    ECC Errors
        Volatile
            SRAM Correctable              : 3
            DRAM Uncorrectable            : 2
        Aggregate
            DRAM Uncorrectable            : 0
    Remapped Rows
        Correctable Error                 : 0
        Uncorrectable Error               : 11
        Pending                           : Yes
        Remapping Failure Occurred        : No
    Fabric
        State                             : N/A
"""
SMI_X = """<?xml version="1.0" ?>
<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">
<nvidia_smi_log>
\t<timestamp>Sat Sep  5 15:01:47 2026</timestamp>
\t<driver_version>580.178.04</driver_version>
\t<gpu id="0000000B:9C:00.0">
\t\t<product_name>NVIDIA A100 80GB PCIe</product_name>
\t\t<gpu_recovery_action>GPU Reset Required</gpu_recovery_action>
\t\t<pci><pci_gpu_link_info><pcie_gen>
\t\t\t<max_link_gen>4</max_link_gen><current_link_gen>1</current_link_gen>
\t\t</pcie_gen></pci_gpu_link_info></pci>
\t\t<clocks_event_reasons><clocks_event_reason_hw_power_brake_slowdown>Active</clocks_event_reason_hw_power_brake_slowdown></clocks_event_reasons>
\t\t<ecc_errors><volatile><dram_uncorrectable>2</dram_uncorrectable></volatile></ecc_errors>
\t\t<remapped_rows>
\t\t\t<remapped_row_corr>0</remapped_row_corr><remapped_row_unc>11</remapped_row_unc>
\t\t\t<remapped_row_pending>Yes</remapped_row_pending><remapped_row_failure>No</remapped_row_failure>
\t\t</remapped_rows>
\t</gpu>
</nvidia_smi_log>
"""


@pytest.mark.parametrize(("name", "text"), [("nvidia_smi_q", SMI_Q), ("nvidia_smi_xml", SMI_X)])
def test_both_long_outputs_of_nvidia_smi_say_the_same(name: str, text: str) -> None:
    assert reader_of(text).id == name
    found = events(name, text)
    assert set(found) == {
        "smi.gpu", "smi.recovery_action", "smi.power_brake", "smi.ecc_uncorrected", "smi.remapped_rows",
        "smi.remap_pending",
    }  # fmt: skip
    assert {event.device for event in found.values()} == {"000b:9c:00.0"}
    assert found["smi.recovery_action"].data == {"code": 1, "text": "GPU Reset Required"}
    assert found["smi.ecc_uncorrected"].data == {"value": 2, "scope": "volatile"}
    assert found["smi.remapped_rows"].data["uncorrectable"] == 11
    gpu = found["smi.gpu"].data
    assert (gpu["name"], gpu["link_gen"], gpu["link_gen_max"]) == ("NVIDIA A100 80GB PCIe", 1, 4)
    assert "fabric_state" not in gpu


def test_xml_that_is_cut_off_is_a_gap_and_still_tells_what_it_holds() -> None:
    cut = SMI_X[: SMI_X.index("<remapped_row_failure>")]
    assert "smi.remap_pending" in events("nvidia_smi_xml", cut)
    assert any("cut off" in item.gap for item in items("nvidia_smi_xml", cut) if isinstance(item, Remark))


def test_the_table_of_nvidia_smi() -> None:
    text = (
        "| NVIDIA-SMI 550.54.15              Driver Version: 550.54.15      CUDA Version: 12.4     |\n"
        "|   0  NVIDIA H100 80GB HBM3          On  |   00000000:18:00.0 Off |                    7 |\n"
        "| N/A   35C    P0             70W /  700W |     512MiB /  81559MiB |      0%      Default |\n"
    )
    assert reader_of(text).id == "nvidia_smi_table"
    found = events("nvidia_smi_table", text)
    assert found["smi.ecc_uncorrected"].data["value"] == 7
    gpu = found["smi.gpu"].data
    assert (gpu["name"], gpu["power_limit_w"], gpu["persistence"], gpu["driver_version"]) == (
        "NVIDIA H100 80GB HBM3", 700, True, "550.54.15",
    )  # fmt: skip


def test_csv_of_nvidia_smi() -> None:
    text = (
        "gpu_bus_id, remapped_rows.correctable, remapped_rows.uncorrectable, remapped_rows.pending, "
        "remapped_rows.failure\n"
        "00000000:18:00.0, 0, 0, No, No\n00000000:2A:00.0, 0, 4, Yes, Yes\n"
    )
    assert reader_of(text).id == "nvidia_smi_csv"
    bad = [
        item for item in items("nvidia_smi_csv", text) if isinstance(item, Event) and item.kind != "smi.gpu"
    ]
    assert sorted(event.kind for event in bad) == [
        "smi.remap_failure",
        "smi.remap_pending",
        "smi.remapped_rows",
    ]
    assert {event.device for event in bad} == {"0000:2a:00.0"}


LSPCI = """0000:00:01.0 PCI bridge [0604]: Intel Corporation Root Port [8086:352a] (rev 04)
\tBus: primary=00, secondary=01, subordinate=03, sec-latency=0
\t\tLnkCtl:\tASPM L1 Enabled; RCB 64 bytes, Disabled- CommClk+
\t\tACSCtl:\tSrcValid+ TransBlk- ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl- DirectTrans-
0000:01:00.0 3D controller [0302]: NVIDIA Corporation GH100 [H100 SXM5 80GB] [10de:2330] (rev a1)
\t\tLnkCap:\tPort #0, Speed 32GT/s, Width x16, ASPM L1, Exit Latency L1 <4us
\t\tLnkSta:\tSpeed 2.5GT/s (downgraded), Width x8 (downgraded)
\t\tUESta:\tDLP- SDES- TLP- FCP- CmpltTO+ CmpltAbrt- UnxCmplt- RxOF- MalfTLP- ECRC- UnsupReq- ACSViol-
\tKernel driver in use: nvidia
"""


def test_lspci() -> None:
    assert reader_of(LSPCI).id == "lspci_verbose"
    made = [item for item in items("lspci_verbose", LSPCI) if isinstance(item, Event)]
    by: dict[str, dict[str, Any]] = {f"{event.kind} {event.device}": dict(event.data) for event in made}
    assert by["pci.bridge 0000:00:01.0"] == {"first_bus": 1, "last_bus": 3}
    assert by["pci.device 0000:01:00.0"] == {"vendor": "10de", "id": "2330"}
    port, gpu = by["lspci.device 0000:00:01.0"], by["lspci.device 0000:01:00.0"]
    assert port["aspm"] == "L1"
    assert port["acs_on"] == ("SrcValid", "ReqRedir", "CmpltRedir", "UpstreamFwd")
    assert (gpu["link_speed_gts"], gpu["link_cap_speed_gts"], gpu["width_downgraded"]) == (2.5, 32.0, True)
    assert (gpu["uncorrected"], gpu["driver"]) == (("CmpltTO",), "nvidia")


def test_lspci_tree() -> None:
    text = (
        "-+-[0000:15]-+-00.0  Intel Corporation Device\n"
        " |           \\-01.0-[16-1a]----00.0-[17-1a]--+-00.0-[18]----00.0  NVIDIA Corporation GH100\n"
        " |                                           \\-01.0-[19]----00.0  Mellanox\n"
    )
    assert reader_of(text).id == "lspci_tree"
    bridges = {
        item.device: (item.data["first_bus"], item.data["last_bus"])
        for item in items("lspci_tree", text)
        if isinstance(item, Event)
    }
    assert bridges == {
        "0000:15:01.0": (0x16, 0x1A), "0000:16:00.0": (0x17, 0x1A), "0000:17:00.0": (0x18, 0x18),
        "0000:17:01.0": (0x19, 0x19),
    }  # fmt: skip


def test_the_bmcs_event_log_short_and_long() -> None:
    short = "   1 | 09/08/2026 | 14:02:11 | Power Supply #0x74 | Failure detected | Asserted\n"
    long = (
        "SEL Record ID          : 0001\n Record Type           : 02\n Timestamp             : "
        "09/08/2026 14:02:11\n"
        " Sensor Type           : Power Supply\n Sensor Number         : 74\n Event Direction       "
        ": Assertion Event\n"
        " Description           : Failure detected\n"
    )
    assert (reader_of(short).id, reader_of(long).id) == ("ipmi_sel", "ipmi_sel_verbose")
    (one,), (other,) = lines("ipmi_sel", short), lines("ipmi_sel_verbose", long)
    assert one.time == other.time
    assert one.time is not None
    assert (one.text, other.text) == (
        "Power Supply #0x74 | Failure detected | Asserted", "Power Supply 74 | Failure detected | Asserted",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("kernel_cmdline", "BOOT_IMAGE=/vmlinuz-5.15 root=UUID=1 ro quiet"),
        ("grub_default", 'GRUB_TIMEOUT=5\nGRUB_CMDLINE_LINUX="iommu=pt"'),
        ("grubby_info", 'index=0\nkernel="/boot/vmlinuz"\nargs="ro"'),
        ("grub_transcript", "Generating grub configuration file ...\ndone"),
        ("os_release", 'NAME="Red Hat"\nVERSION_ID="9.3"'),
        ("prometheus", '# HELP xid_errors Number\nxid_errors{gpu="0"} 3'),
        ("dmidecode", "# dmidecode 3.5\nGetting SMBIOS data from sysfs."),
        ("nvidia_bug_report", "Start of NVIDIA bug report log file.  Please include this file"),
        ("traceback", 'Traceback (most recent call last):\n  File "x.py", line 1, in <module>'),
        ("plain", "nothing that anybody knows"),
    ],
)
def test_documents_of_lines_are_known_by_what_they_say(name: str, text: str) -> None:
    assert reader_of(text).id == name
    assert [line.text for line in lines(name, text)] == text.splitlines()
