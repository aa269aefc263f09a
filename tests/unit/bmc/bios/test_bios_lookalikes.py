"""What only sounds like a knob is never taken for it, even where it is all there is."""

from __future__ import annotations

from typing import Any

import pytest

from nodeprep.bmc.bios import BiosView, Wanted, knobs, plan
from nodeprep.bmc.redfish.registry import Attribute, Registry, Value
from nodeprep.model.bios import BiosMachine

SWITCH = ("Enabled", "Disabled")
SPEEDS = ("Auto", "Gen1", "Gen2", "Gen3", "Gen4")
LOOKALIKES: tuple[dict[str, Any], ...] = (
    {"name": "Rome0278", "display_name": "Link Speed", "values": SPEEDS},
    {
        "name": "Rome0278",
        "display_name": "Link Speed",
        "help_text": "Link Speed for NTB Mode",
        "menu_path": "./PCIe",
    },
    {"name": "Rome0169", "display_name": "Early Link Speed", "values": SPEEDS},
    {"name": "NTB_Link", "display_name": "PCIe NTB Link Speed", "values": SPEEDS},
    {"name": "SATA001", "display_name": "SATA Port 0 Link Speed", "values": SPEEDS},
    {"name": "DMI001", "display_name": "PCIe DMI Max Link Speed", "values": SPEEDS},
    {"name": "EqualizationBypassToHighestRate_0101", "display_name": "Equalization Bypass To Highest Rate"},
    {"name": "Gen4LinkDegradation_1868", "display_name": "Gen4 Link Degradation"},
    {"name": "PCIeGen5LinkSpeedTest", "display_name": "PCIe Link Speed Compliance", "values": SPEEDS},
    {"name": "ControlIommu", "display_name": "Control Iommu Pre-boot Behavior"},
    {"name": "ControlIommu", "display_name": "IOMMU"},
    {"name": "Secured_Core_IOMMU", "display_name": "IOMMU"},
    {"name": "Q17", "display_name": "IOMMU", "menu_path": "./Security/SecuredCore"},
    {"name": "KernelDmaProtection", "display_name": "Kernel DMA Protection"},
    {"name": "PrebootDmaProtection", "display_name": "Pre-Boot DMA Protection"},
    {"name": "DmaCtrlOptIn", "display_name": "DMA Control Opt-In Flag"},
    {"name": "AmdDmaRemapping", "display_name": "AMD DMA Remapping"},
    {"name": "VMDforDirectAssign", "display_name": "VMD for Direct Assign"},
    {"name": "ProcVirtualization", "display_name": "Virtualization Technology"},
    {"name": "EHCIHandoff", "display_name": "EHCI Hand-off"},
    {"name": "Rome0521", "display_name": "XHCI Controller0 enable"},
    {"name": "HotPlug_2041", "display_name": "Hot Plug"},
    {"name": "SLOT1PCI_E5_0X16OPROM_0051", "display_name": "SLOT1 PCI-E 5.0 X16 OPROM"},
    {"name": "DevicesandIOPorts_Device_Slot1", "display_name": "Slot 1"},
    {"name": "PciSlot2Enable", "display_name": "PCI-E Slot 2"},
    {"name": "CbRelaxedOrdering", "display_name": "Relaxed Ordering"},
    {"name": "PCIeRemoteP2PRelaxedOrdering_0026", "display_name": "PCIe Remote P2P Relaxed Ordering"},
    {"name": "PcieExtendedTagField", "display_name": "PCIe Extended Tag Field"},
    {"name": "SYSACS", "display_name": "System Access Level"},
    {"name": "NativeAspm", "display_name": "Native ASPM"},
    {"name": "PchPcieAspm", "display_name": "PCH PCIe ASPM"},
    {"name": "EmbSata1Aspm", "display_name": "SATA Power Management(SALP)"},
    {"name": "PkgCLatNeg", "display_name": "Package C State Latency Negotiation"},
    {"name": "ProcCStates", "display_name": "C States", "current": "Enabled"},
    {"name": "Processors_C1EnhancedMode", "display_name": "C1 Enhanced Mode"},
    {"name": "Memory_MirrorBelow4GB", "display_name": "Mirror Below 4GB"},
    {"name": "Broadcom_Slot27_SRIOV", "display_name": "SR-IOV"},
    {"name": "Q18", "display_name": "SR-IOV", "menu_path": "./MellanoxNetworkAdapter--Slot15/Port"},
    {"name": "Mellanox__Slot15_LinkSpeed", "display_name": "PCIe Link Speed", "values": SPEEDS},
    {
        "name": "PCIeLinkTrainingType",
        "display_name": "PCIe Link Training Type",
        "values": ("1 Step", "2 Step"),
    },
)


def view(values: tuple[str, ...] = SWITCH, current: str = "", **about: Any) -> BiosView:
    attribute = Attribute(type="Enumeration", values=tuple(Value(text, text) for text in values), **about)
    return BiosView(
        registry=Registry({attribute.name: attribute}), current={attribute.name: current or values[0]}
    )


@pytest.mark.parametrize("about", LOOKALIKES, ids=lambda about: about["name"])
def test_lookalike_is_no_knob(about: dict[str, Any]) -> None:
    machine = BiosMachine(vendor="Somebody", model="", bios="", bmc_firmware="")
    wanted = {knob.id: Wanted("4" if knob.id == "pcie_link_gen" else "disabled") for knob in knobs().values()}
    found = plan(machine, view(**about), wanted)
    assert {entry.knob: entry.status for entry in found.knobs} == dict.fromkeys(wanted, "unsupported")


REAL: tuple[tuple[str, dict[str, Any]], ...] = (
    ("pcie_link_gen", {"name": "SLOT3", "display_name": "SLOT3 PCI-E 5.0 X16 Link Speed", "values": SPEEDS}),
    ("pcie_link_gen", {"name": "M2001", "display_name": "M.2_1 Link Speed", "values": SPEEDS}),
    ("pcie_link_gen", {"name": "ADV12", "display_name": "PCIe Slot 4 Max Speed", "values": SPEEDS}),
    ("pcie_link_gen", {"name": "PcieGen", "display_name": "PCIe Generation", "values": SPEEDS}),
    ("iommu", {"name": "Q1", "display_name": "Intel(R) VT-d"}),
    ("iommu", {"name": "Q2", "display_name": "Intel® Virtualization Technology for Directed I/O"}),
    ("iommu", {"name": "Intel\u00aeVTforDirectedI/O(VT-d)"}),
    ("iommu", {"name": "ProcAmdIOMMU"}),
    ("iommu", {"name": "Q3", "display_name": "SMMU Support"}),
    ("iommu", {"name": "Q4", "display_name": "Intel VT for Directed I/"}),
    ("xhci_handoff", {"name": "XHCIHand-off#0031", "display_name": ""}),
    ("above_4g", {"name": "Q5", "display_name": "Memory Mapped I/O Above 4G"}),
    ("above_4g", {"name": "Q6", "display_name": "PCI 64-Bit Resource Allocation"}),
    ("resizable_bar", {"name": "Q7", "display_name": "Resizable BAR Support"}),
    ("sriov", {"name": "Q8", "display_name": "Single Root I/O Virtualization (SR-IOV)"}),
    ("acs", {"name": "Q9", "display_name": "ACS Control"}),
    ("relaxed_ordering", {"name": "Q10", "display_name": "PCI Express Relaxed Ordering"}),
    ("ten_bit_tags", {"name": "Q11", "display_name": "10-Bit Tag Support"}),
    (
        "package_c_states",
        {"name": "Q12", "display_name": "Package C-State Limit", "values": ("C0/C1 state", "No Limit")},
    ),
    ("package_c_states", {"name": "Q13", "display_name": "DF C-States"}),
    ("aspm", {"name": "Q14", "display_name": "PCI Express ASPM"}),
)


@pytest.mark.parametrize(
    ("knob", "about"), REAL, ids=lambda value: value if isinstance(value, str) else value["name"]
)
def test_spellings_of_other_vendors_are_found(knob: str, about: dict[str, Any]) -> None:
    machine = BiosMachine(vendor="Somebody", model="", bios="", bmc_firmware="")
    wanted = {one.id: Wanted("3" if one.id == "pcie_link_gen" else "disabled") for one in knobs().values()}
    found = {entry.knob: entry for entry in plan(machine, view(**about), wanted).knobs}
    assert found[knob].status in ("change", "ok")
    assert [one.name for one in found[knob].attributes] == [about["name"]]
    assert {name for name, entry in found.items() if entry.status != "unsupported"} == {knob}
