"""On captures of four real machines each knob is the attribute and the value a person would choose.

The expectations are written by hand from the registries' own words, and not made by what they test.
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from nodeprep.bmc.bios import BiosView, parse_settings, plan, show
from nodeprep.bmc.bios.dump import logical_cpus, read_dump
from nodeprep.bmc.bios.table import ASKED, render, renew
from nodeprep.bmc.redfish.registry import Registry
from nodeprep.model import schemas
from nodeprep.model.bios import BiosMachine, BiosPlan
from nodeprep.model.codec import encode

ROOT = Path(__file__).parents[2]
TREES = ROOT.parent / "shared" / "field-data" / "redfish"
VENDORS = ("dell", "hpe", "lenovo", "gigabyte")
PAGE = ROOT / "docs" / "bios-knobs.md"

pytestmark = pytest.mark.skipif(
    not TREES.is_dir(), reason="needs the captures of real BMCs in ../shared/field-data"
)

LENOVO_PLACES = (
    *(f"Slot{number}" for number in (*range(1, 11), 15, 16, 20, 21, 25, 26, 27)),
    *(f"NVMeBay{number}" for number in range(8)),
)
HPE_SLOTS = (1, 2, 4, 5, 10)

# What a person would choose: knob=value to attributes; no attributes means that the machine has none.
CHOSEN: dict[str, dict[str, dict[str, Any]]] = {
    "dell": {
        "pcie_link_gen=4": {},
        "pcie_link_gen=3": {},
        "iommu=disabled": {"ProcVirtualization": "Disabled"},
        "aspm=disabled": {"PcieAspmL1": "Disabled"},
        "xhci_handoff=disabled": {},
        "above_4g=enabled": {"MmioAbove4Gb": "Enabled"},
        "resizable_bar=enabled": {},
        "sriov=disabled": {"SriovGlobalEnable": "Disabled"},
        "acs=disabled": {},
        "relaxed_ordering=enabled": {},
        "ten_bit_tags=enabled": {},
        "package_c_states=disabled": {"ProcCStates": "Disabled"},
        "package_c_states=enabled": {},
    },
    "hpe": {
        "pcie_link_gen=4": {
            "MaxPcieSpeed": "PerPortCtrl",
            **{f"PciSlot{n}LinkSpeed": "Auto" for n in HPE_SLOTS},
        },
        "pcie_link_gen=3": {
            "MaxPcieSpeed": "PerPortCtrl",
            **{f"PciSlot{n}LinkSpeed": "Auto" if n == 10 else "PcieGen3" for n in HPE_SLOTS},
        },
        "pcie_link_gen=2,slot=10": {"PciSlot10LinkSpeed": "PcieGen2"},
        "iommu=disabled": {"ProcAmdIoVt": "Disabled"},
        "aspm=disabled": {f"PciSlot{n}Aspm": "Disabled" for n in HPE_SLOTS},
        "aspm=enabled,slot=4": {"PciSlot4Aspm": "AspmL1Enabled"},
        "xhci_handoff=disabled": {},
        "above_4g=enabled": {},
        "resizable_bar=enabled": {},
        "sriov=disabled": {"Sriov": "Disabled"},
        "acs=disabled": {"AccessControlService": "Disabled"},
        "relaxed_ordering=enabled": {},
        "ten_bit_tags=enabled": {},
        "package_c_states=disabled": {"DataFabricCStateEnable": "Disabled"},
    },
    "lenovo": {
        "pcie_link_gen=4": {f"DevicesandIOPorts_PCIeGen_{place}": "Gen4" for place in LENOVO_PLACES},
        "pcie_link_gen=3,slot=15": {"DevicesandIOPorts_PCIeGen_Slot15": "Gen3"},
        "iommu=disabled": {"DevicesandIOPorts_IntelVTforDirectedIOVTd": "Disabled"},
        "aspm=disabled": {"Power_ASPM": "Disabled"},
        "aspm=enabled": {"Power_ASPM": "Auto"},
        "xhci_handoff=disabled": {},
        "above_4g=enabled": {"DevicesandIOPorts_PCI64BitResourceAllocation": "Enabled"},
        "resizable_bar=enabled": {},
        "sriov=disabled": {"DevicesandIOPorts_SRIOV": "Disabled"},
        "acs=disabled": {"Processors_PCIeACSCTL": "Disabled"},
        "relaxed_ordering=enabled": {},
        "ten_bit_tags=enabled": {},
        "package_c_states=disabled": {},
    },
    "gigabyte": {
        "pcie_link_gen=4": {
            **{f"GBT00{number}": "Gen4" for number in (75, 76, 78, 79, 80, 81)},
            "GBT0077": "Auto",
        },
        "pcie_link_gen=3,slot=OCP": {"GBT0077": "Gen3"},
        "iommu=disabled": {"Rome0162": "Disabled"},
        "aspm=disabled": {},
        "xhci_handoff=disabled": {"USB003": "Disabled"},
        "above_4g=enabled": {"PCIS003": "Enabled"},
        "resizable_bar=enabled": {},
        "sriov=disabled": {"PCIS007": "Disabled"},
        "acs=disabled": {"Rome0164": "Disabled"},
        "relaxed_ordering=enabled": {"GBT0135": "Enabled"},
        "ten_bit_tags=enabled": {"Rome0166": "Enable"},
        "package_c_states=disabled": {"Rome0190": "Disabled"},
    },
}
# Those that are not to be had by writing one attribute, and a text that tells why.
REFUSED = {
    ("dell", "aspm=enabled"): "Set SysProfile to Custom first",
    ("hpe", "package_c_states=disabled"): "Set WorkloadProfile to Custom first",
}


@pytest.fixture(scope="module")
def trees() -> dict[str, Any]:
    return {vendor: json.loads((TREES / f"{vendor}.json").read_text(encoding="utf-8")) for vendor in VENDORS}


def planned(tree: Any, *settings: str) -> BiosPlan:
    machine, view = read_dump(tree)
    return plan(machine, view, parse_settings(settings), logical_cpus=logical_cpus(tree))


@pytest.mark.parametrize(
    ("vendor", "setting"), [(vendor, setting) for vendor, chosen in CHOSEN.items() for setting in chosen]
)
def test_knob_is_what_a_person_would_choose(trees: dict[str, Any], vendor: str, setting: str) -> None:
    (entry,) = planned(trees[vendor], setting).knobs
    wanted = CHOSEN[vendor][setting]
    assert {one.name: one.value for one in entry.attributes} == wanted
    if not wanted:
        assert entry.status == "unsupported"
        assert "Looked for" in entry.reason
    elif (vendor, setting) in REFUSED:
        assert entry.status == "refused"
        assert REFUSED[vendor, setting] in entry.reason
    else:
        so_already = all(one.current == one.value for one in entry.attributes)
        assert entry.status == ("ok" if so_already else "change")


@pytest.mark.parametrize(("vendor", "setting"), REFUSED)
def test_what_is_held_by_a_preset_is_refused_with_the_way_out(
    trees: dict[str, Any], vendor: str, setting: str
) -> None:
    (entry,) = planned(trees[vendor], setting).knobs
    assert entry.status == "refused"
    assert REFUSED[vendor, setting] in entry.reason


@pytest.mark.parametrize("vendor", VENDORS)
def test_every_value_is_one_the_registry_offers(trees: dict[str, Any], vendor: str) -> None:
    machine, view = read_dump(trees[vendor])
    for wanted, generation in (("enabled", "1"), ("disabled", "3"), ("enabled", "4"), ("disabled", "6")):
        settings = [f"{knob}={wanted}" for knob in ASKED if knob != "pcie_link_gen"]
        for entry in plan(machine, view, parse_settings([*settings, f"pcie_link_gen={generation}"])).knobs:
            for one in entry.attributes:
                offered = {value.name for value in view.registry.attributes[one.name].values}
                assert one.value in offered
                assert one.current == view.current[one.name]


def found_by(view: BiosView, maker: str, names: dict[str, str]) -> dict[str, dict[str, Any]]:
    machine = BiosMachine(vendor=maker, model="", bios="", bmc_firmware="")
    return {
        entry.knob: {names.get(one.name, one.name): one.value for one in entry.attributes}
        for entry in plan(machine, view, ASKED).knobs
    }


@pytest.mark.parametrize("vendor", VENDORS)
def test_matching_does_the_work_and_not_names(trees: dict[str, Any], vendor: str) -> None:
    """With codes for names, or from a maker nobody knows, the same is found. But for Dell's VT-d."""
    machine, view = read_dump(trees[vendor])
    entries = view.registry.attributes
    codes = {name: f"XQ{place:04d}Z" for place, name in enumerate(dict.fromkeys((*entries, *view.current)))}
    coded = BiosView(
        registry=Registry(
            {codes[name]: dataclasses.replace(one, name=codes[name]) for name, one in entries.items()}
        ),
        current={codes[name]: value for name, value in view.current.items()},
    )
    wanted = found_by(view, machine.vendor, {})
    if vendor == "dell":
        assert wanted.pop("iommu") == {"ProcVirtualization": "Disabled"}
    assert sum(map(bool, wanted.values())) >= 4
    for other in (
        found_by(coded, "Somebody", {code: name for name, code in codes.items()}),
        found_by(view, "Somebody", {}),
    ):
        assert {knob: other[knob] for knob in wanted} == wanted


@pytest.mark.parametrize("vendor", VENDORS)
def test_a_machine_set_as_planned_is_ok(trees: dict[str, Any], vendor: str) -> None:
    machine, view = read_dump(trees[vendor])
    before = plan(machine, view, ASKED)
    after = dataclasses.replace(view, current={**view.current, **before.to_write(phase=1)}, pending={})
    for old, new in zip(before.knobs, plan(machine, after, ASKED).knobs, strict=True):
        assert new.status == ("ok" if old.status in ("ok", "change") else old.status), new.reason
    staged = dataclasses.replace(view, pending=before.to_write(phase=1))
    again = plan(machine, staged, ASKED)
    assert again.to_write(phase=1) == {}
    assert again.needs_reset


@pytest.mark.parametrize("vendor", VENDORS)
def test_documents_hold_to_their_schemas(trees: dict[str, Any], vendor: str) -> None:
    machine, view = read_dump(trees[vendor])
    for document in (plan(machine, view, ASKED), show(machine, view)):
        Draft202012Validator(schemas.load(document.schema)).validate(json.loads(encode(document)))


def test_the_page_has_the_tables_of_these_trees() -> None:
    page = PAGE.read_text(encoding="utf-8")
    files = [TREES / f"{vendor}.json" for vendor in VENDORS]
    assert page == renew(page, render(files)), (
        "run: python -m nodeprep.bmc.bios.table docs/bios-knobs.md "
        "../shared/field-data/redfish/{dell,hpe,lenovo,gigabyte}.json"
    )
