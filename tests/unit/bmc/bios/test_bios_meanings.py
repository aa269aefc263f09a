"""What values mean, and how they are written."""

from __future__ import annotations

import random
from typing import Any

import pytest

from nodeprep.bmc.bios import BiosView, Wanted, knobs, plan, show
from nodeprep.bmc.bios.match import key, natural, same_scope
from nodeprep.bmc.bios.meanings import generation_of, opposite_spelling, respelt, word_of
from nodeprep.bmc.bios.vendor import vendor_of, vendors
from nodeprep.bmc.redfish.registry import no_registry, read_registry
from nodeprep.model.bios import BiosMachine
from nodeprep.model.codec import encode


@pytest.mark.parametrize(
    ("text", "generation"),
    [
        ("Gen4", 4),
        ("GEN5", 5),
        ("Gen 3", 3),
        ("PcieGen2", 2),
        ("PCIe Generation 3.0", 3),
        ("Gen 4 (16 GT/s)", 4),
        ("Force to 16.0 GT/s", 4),
        ("2.5 GT/s", 1),
        ("32GT/s", 5),
        ("64.0 GT/s", 6),
        ("StaticLinkSpeedGen5", 5),
        ("Static Target Link Speed (GEN5", 5),
        ("Auto", "auto"),
        ("PerPortCtrl", "auto"),
        ("Maximum", "maximum"),
        ("MaxSupported", "maximum"),
        ("Max Speed", "maximum"),
        # Contradictory, or no PCIe generation at all.
        ("Gen3 16 GT/s", None),
        ("Gen7", None),
        ("10Gbps", None),
        ("16Gbps", None),
        ("13 GT/s", None),
        ("GENZ_1", None),
        ("Enabled", None),
        ("", None),
    ],
)
def test_generation_of(text: str, generation: object) -> None:
    assert generation_of(text) == generation


@pytest.mark.parametrize(
    ("text", "generation", "new"),
    [
        ("GEN5", 4, "GEN4"),
        ("PcieGen3", 4, "PcieGen4"),
        ("Force to 8.0 GT/s", 4, "Force to 16.0 GT/s"),
        ("8GT/s", 5, "32GT/s"),
        ("Gen 3 (8 GT/s)", 4, "Gen 4 (16 GT/s)"),
        ("Auto", 4, None),
    ],
)
def test_respelt(text: str, generation: int, new: str | None) -> None:
    assert respelt(text, generation) == new


def test_opposites_keep_their_spelling() -> None:
    pairs = {
        "Enabled": "Disabled",
        "Enable": "Disable",
        "Yes": "No",
        "enabled": "disabled",
        "ON": "OFF",
        "1": "0",
    }
    for on, off in pairs.items():
        assert opposite_spelling(on, on=False) == off
        assert opposite_spelling(off, on=True) == on
        assert opposite_spelling(on, on=True) == on
    assert opposite_spelling("Auto", on=True) is None


def test_keys_are_the_same_for_all_spellings() -> None:
    spellings = (
        "SR-IOVSupport#002B",
        "SR_IOVSupport_0047",
        "SR-IOV Support",
        "SriovSupport",
        "SR-IOV(R) Support",
    )
    assert {key(text) for text in spellings} == {"sriovsupport"}
    assert key("Intel\u00aeVTforDirectedI/O(VT-d)") == key("IntelVTforDirectedI_O_VT_d__1E32")
    assert word_of("PCIS007Enabled", "PCIS007") == "enabled"
    assert word_of(True) == "true"


def test_scopes() -> None:
    assert same_scope("slot 3", "3")
    assert same_scope("GENZ_1", "genz_1")
    assert not same_scope("slot 13", "3")
    assert not same_scope("nvme bay 3", "3")
    assert sorted(["slot 10", "slot 2", "OCP"], key=natural) == ["OCP", "slot 2", "slot 10"]


@pytest.mark.parametrize(
    ("maker", "vendor"),
    [
        ("Dell Inc.", "dell"),
        ("dell", "dell"),
        ("HPE", "hpe"),
        ("Hewlett Packard Enterprise", "hpe"),
        ("Cray Inc.", "cray"),
        ("Lenovo", "lenovo"),
        ("Super Micro Computer, Inc.", "supermicro"),
        ("GIGABYTE", "gigabyte"),
        ("Giga Computing", "gigabyte"),
        ("ami", "gigabyte"),
        ("NVIDIA", "nvidia"),
        ("Intel Corporation", "intel"),
        ("Somebody", "other"),
        ("", "other"),
    ],
)
def test_makers(maker: str, vendor: str) -> None:
    assert vendor_of(maker).id == vendor


def test_vendors_speak_of_knobs_there_are() -> None:
    for vendor in vendors().values():
        for rules in (vendor.fallbacks, vendor.together, vendor.codes, vendor.absent):
            assert set(rules) <= set(knobs())
        for knob, codes in vendor.codes.items():
            assert set(codes) <= set(knobs()[knob].values)


def test_every_knob_says_what_it_costs() -> None:
    assert len(knobs()) == 11
    for knob in knobs().values():
        for value in knob.values:
            assert knob.risks_of(value)
        assert len(knob.matcher.looked_for) > 10


NAMES = (
    "IOMMU",
    "PciSlot1LinkSpeed",
    "Power_ASPM",
    "PackageCState",
    "ACS",
    "SRIOV",
    "Rome0162",
    "",
    "é",
    "_0000",
)
WORDS = (
    "Auto",
    "Enabled",
    "Disable",
    "Gen4",
    "PerPortCtrl",
    "0",
    "",
    "C0/C1 state",
    "16 GT/s",
    "Maximum",
    "(",
)
VALUES: tuple[Any, ...] = (*WORDS, None, True, False, 0, 1, 3, -1, 2.5, 10**30)


@pytest.mark.parametrize("seed", range(60))
def test_no_bios_makes_a_plan_fail(seed: int) -> None:
    """Nonsense of every kind ends in a document, and no value is written that was not offered or there."""
    chance = random.Random(seed)  # noqa: S311 - not for secrets
    entries = [
        {
            "AttributeName": name,
            "DisplayName": chance.choice((None, *NAMES, "Link Speed", "PCIe Slot 1 Link Speed")),
            "Type": chance.choice((None, "Enumeration", "Integer", "Boolean", "String", "Password", "New")),
            "Value": [
                {"ValueName": chance.choice(WORDS), "ValueDisplayName": chance.choice((None, *WORDS))}
                for _ in range(chance.randrange(4))
            ],
            "ReadOnly": chance.random() < 0.2,
            "Hidden": chance.choice((None, "true", False)),
        }
        for name in NAMES
    ]
    current = {name: chance.choice(VALUES) for name in NAMES if chance.random() < 0.8}
    pending = {name: chance.choice(VALUES) for name in current if chance.random() < 0.3}
    registry = read_registry({"RegistryEntries": {"Attributes": entries}}, current)
    for known in (registry, no_registry(current)):
        view = BiosView(registry=known, current=current, pending=pending)
        machine = BiosMachine(
            vendor=chance.choice(("Dell", "HPE", "Intel", "")), model="", bios="", bmc_firmware=""
        )
        for wanted in ("enabled", "disabled"):
            asked = {knob.id: Wanted(wanted if knob.is_switch else "4") for knob in knobs().values()}
            found = plan(machine, view, asked)
            assert [entry.knob for entry in found.knobs] == list(asked)
            assert all(entry.reason and "{name}" not in entry.reason for entry in found.knobs)
            for entry in found.knobs:
                if entry.status in ("ok", "change"):
                    assert entry.attributes
            assert encode(found)
        assert encode(show(machine, view))
