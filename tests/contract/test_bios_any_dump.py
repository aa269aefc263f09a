"""`bios plan` over damaged trees: a document or a clear error, and never an "ok" that was not read.

The trees of four real BMCs, each damaged in one way by hand and in a hundred by a seeded die.
"""

from __future__ import annotations

import copy
import json
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nodeprep.errors import ExitCode, NodeprepError
from nodeprep.model.bios import BiosPlan
from nodeprep.model.codec import decode, encode
from nodeprep.sim.bmc import Dump

ROOT = Path(__file__).parents[2]
TREES = ROOT.parent / "shared" / "field-data" / "redfish"
sys.path.insert(0, str(ROOT / "tests" / "unit" / "bmc" / "redfish"))

from bios_bench import Bench  # noqa: E402

pytestmark = pytest.mark.skipif(not TREES.is_dir(), reason=f"the real trees are not at {TREES}")
ALL = ("dell", "gigabyte", "hpe", "lenovo")
ASKED = ("pcie_link_gen=4", "iommu=disabled", "aspm=disabled", "sriov=enabled", "above_4g=enabled")
# Half of a UTF-16 pair; a number no machine word holds; a text that turns the line and the colour.
JUNK: tuple[Any, ...] = (
    None, [], {}, "", 0, -1, 10**400, float("nan"), True, "\ud83d", "\u202e\x00\x1b[31m", "x" * 5000,
    [[]], {"@odata.id": "/redfish/v1/nowhere"}, {"@odata.id": 5}, ["Enabled"], "Enabled", "Disabled",
)  # fmt: skip
Damage = Callable[[dict[str, Any]], None]
_trees: dict[str, dict[str, Any]] = {}


def tree(name: str) -> dict[str, Any]:
    """A tree without what no plan reads."""
    if name not in _trees:
        whole = json.loads((TREES / f"{name}.json").read_text())
        _trees[name] = {uri: body for uri, body in whole.items() if "/JsonSchemas" not in uri}
    return _trees[name]


def bioses(dump: dict[str, Any]) -> list[dict[str, Any]]:
    """Bios and its settings; a crawler of HPE's wrote each down under two spellings of its URI."""
    return [body for body in dump.values() if str(body.get("@odata.type", "")).startswith("#Bios.")]


def registries(dump: dict[str, Any]) -> list[dict[str, Any]]:
    return [body for body in dump.values() if isinstance(body.get("RegistryEntries"), dict)]


def each_attribute(change: Callable[[dict[str, Any]], Any]) -> Damage:
    def damage(dump: dict[str, Any]) -> None:
        for registry in registries(dump):
            for attribute in registry["RegistryEntries"].get("Attributes") or []:
                change(attribute)

    return damage


def in_bios(**changed: Any) -> Damage:
    def damage(dump: dict[str, Any]) -> None:
        for bios in bioses(dump):
            bios.update(changed)

    return damage


def every_value(value: Any) -> Damage:
    def damage(dump: dict[str, Any]) -> None:
        for bios in bioses(dump):
            bios["Attributes"] = dict.fromkeys(bios.get("Attributes", ()), value)

    return damage


def no_registry(dump: dict[str, Any]) -> None:
    for uri in [uri for uri, body in dump.items() if "RegistryEntries" in body]:
        del dump[uri]


def empty_bios(dump: dict[str, Any]) -> None:
    for bios in bioses(dump):
        bios.clear()


def without(part: str) -> Damage:
    def damage(dump: dict[str, Any]) -> None:
        for uri in [uri for uri in dump if part.lower() in uri.lower()]:
            del dump[uri]

    return damage


def registry_is(**changed: Any) -> Damage:
    def damage(dump: dict[str, Any]) -> None:
        for registry in registries(dump):
            registry.update(changed)

    return damage


BY_HAND: dict[str, Damage] = {
    "no_registry": no_registry,
    "no_registries": without("/Registries"),
    "empty_registry": registry_is(RegistryEntries={"Attributes": []}),
    "registry_null": registry_is(RegistryEntries={"Attributes": None, "Dependencies": None}),
    "registry_of_texts": registry_is(RegistryEntries={"Attributes": ["a", 1, None, []]}),
    "registry_in_japanese": registry_is(Language="ja"),
    "attributes_without_type": each_attribute(lambda one: one.pop("Type", None)),
    "attributes_of_odd_type": each_attribute(lambda one: one.update(Type=7)),
    "attributes_without_name": each_attribute(lambda one: one.pop("AttributeName", None)),
    "attributes_without_values": each_attribute(lambda one: one.pop("Value", None)),
    "values_are_texts": each_attribute(lambda one: one.update(Value=["Enabled", "Disabled"])),
    "values_are_null": each_attribute(lambda one: one.update(Value=[None, {"ValueName": None}])),
    "values_are_numbers": each_attribute(lambda one: one.update(Value=[{"ValueName": 1}, {"ValueName": 0}])),
    "display_names_are_one": each_attribute(lambda one: one.update(DisplayName="IOMMU")),
    "display_names_are_lists": each_attribute(lambda one: one.update(DisplayName=["a"], MenuPath={"b": 1})),
    "names_in_other_letters": each_attribute(lambda one: one.update(DisplayName="仮想化 \u202e ﹏")),
    "flags_are_texts": each_attribute(lambda one: one.update(ReadOnly="True", Hidden="no", GrayOut=3)),
    "bounds_are_texts": each_attribute(lambda one: one.update(LowerBound="a", UpperBound=10**400)),
    "no_bios": without("/Bios"),
    "bios_empty": empty_bios,
    "attributes_null": in_bios(Attributes=None),
    "attributes_list": in_bios(Attributes=[{"a": 1}]),
    "attributes_empty": in_bios(Attributes={}),
    "values_null": every_value(None),
    "values_gigantic": every_value(10**400),
    "values_nan": every_value(float("nan")),
    "values_objects": every_value({"a": 1}),
    "values_half_characters": every_value("\ud83d"),
    "settings_dangling": in_bios(
        **{"@Redfish.Settings": {"SettingsObject": {"@odata.id": "/redfish/v1/nowhere"}}}
    ),
    "settings_abroad": in_bios(
        **{"@Redfish.Settings": {"SettingsObject": {"@odata.id": "https://elsewhere.invalid/x"}}}
    ),
    "settings_number": in_bios(**{"@Redfish.Settings": 5}),
    "no_managers": without("/Managers"),
    "no_chassis": without("/Chassis"),
    "no_systems": without("/Systems"),
}


def planned(dump: dict[str, Any], folder: Path) -> BiosPlan | NodeprepError:
    """The plan or the error; anything else that is raised fails the test."""
    try:
        found = Bench(Dump(dump), folder).plan(*ASKED)
    except NodeprepError as raised:
        error = raised
    else:
        return _checked(found)
    # A user's terminal must be able to show it, and --json to write it.
    encode([error.message, error.hint])
    assert error.exit_code in (ExitCode.INCONCLUSIVE, ExitCode.UNREACHABLE, ExitCode.USAGE), error
    return error


def _checked(found: BiosPlan) -> BiosPlan:
    assert decode(encode(found), BiosPlan, source="x").knobs == found.knobs
    assert [knob.knob for knob in found.knobs] == [one.split("=")[0] for one in ASKED]
    for knob in found.knobs:
        if knob.status == "ok":
            assert knob.attributes, "ok without an attribute that was read"
            assert all(one.current == one.value is not None for one in knob.attributes)
        else:
            assert knob.reason
    return found


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("damage", BY_HAND)
def test_damaged_by_hand(name: str, damage: str, tmp_path: Path) -> None:
    dump = copy.deepcopy(tree(name))
    BY_HAND[damage](dump)
    planned(dump, tmp_path)


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("damage", ["attributes_null", "attributes_empty", "values_null", "no_bios"])
def test_nothing_is_ok_where_nothing_can_be_read(name: str, damage: str, tmp_path: Path) -> None:
    dump = copy.deepcopy(tree(name))
    BY_HAND[damage](dump)
    found = planned(dump, tmp_path)
    if isinstance(found, BiosPlan):
        assert not any(knob.status == "ok" for knob in found.knobs)


@pytest.mark.parametrize("seed", range(25))
@pytest.mark.parametrize("name", ALL)
def test_damaged_by_a_die(name: str, seed: int, tmp_path: Path) -> None:
    die = random.Random(f"{name}{seed}")  # noqa: S311 - a test that can be repeated
    dump = dict(tree(name))
    uris = [uri for uri in dump if not any(part in uri for part in ("PCIe", "Thermal", "Entries"))]
    for _ in range(die.choice((1, 2, 5))):
        uri = die.choice(uris)
        body = dump[uri] = copy.deepcopy(dump[uri])
        parent: Any = None
        key: Any = None
        value: Any = body
        while isinstance(value, (dict, list)) and value and (parent is None or die.random() < 0.8):
            parent, key = value, die.choice(list(value) if isinstance(value, dict) else range(len(value)))
            value = parent[key]
        if parent is None:
            dump[uri] = die.choice(JUNK)
        elif die.random() < 0.4:
            del parent[key]
        else:
            parent[key] = die.choice(JUNK)
    planned(dump, tmp_path)
