"""The registry: found under all its names, read in spite of its faults."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from fake_redfish import FakeBmc, error
from trees import BIOS, REGISTRIES, enumeration, registry, tree

from nodeprep.bmc import BmcUnreachable
from nodeprep.bmc.bios.match import key
from nodeprep.bmc.redfish.bios import read_bios
from nodeprep.bmc.redfish.errors import Malformed, Refused
from nodeprep.bmc.redfish.registry import Registry, Value, read_registry
from nodeprep.bmc.redfish.registry_finder import find_registry, normalised
from nodeprep.bmc.redfish.service import read_service

REGISTRY = registry(enumeration("A", "0=Disable", "1=Enable"))
PLACE = "/redfish/v1/store/registry"


def found(resources: dict[str, Any], script: Any = None) -> Registry:
    with FakeBmc(resources, script).connection() as connection:
        return find_registry(connection, read_bios(connection, read_service(connection)))


def filed(
    name: str | None, member: str, file: dict[str, Any], place: str = PLACE, **more: Any
) -> dict[str, Any]:
    """A tree whose Bios names a registry, and whose collection has one file."""
    uri = f"{REGISTRIES}/{member}"
    collection = {"Members": [{"@odata.id": f"{REGISTRIES}/Base.1.5.0"}, {"@odata.id": uri}]}
    resources = {REGISTRIES: collection, uri: file, place: REGISTRY, **more}
    return tree({"A": "Disable"}, bios={"AttributeRegistry": name}, more=resources)


def english(uri: Any = PLACE) -> list[dict[str, Any]]:
    return [{"Language": "en", "Uri": uri}]


@pytest.mark.parametrize(
    ("name", "member", "file", "place"),
    [
        # Lenovo.
        ("BiosAttributeRegistry.1.0.0", "BiosAttributeRegistry.1.0.0",
         {"Registry": "BiosAttributeRegistry.1.0", "Location": english()}, PLACE),
        # Dell: another version in the name.
        ("BiosAttributeRegistry.v1_0_3", "BiosAttributeRegistry.v1_0_0",
         {"Registry": "BiosAttributeRegistry1.0", "Location": english()}, PLACE),
        # Supermicro: no version in the name, and the registry is outside /redfish.
        ("BiosAttributeRegistry.v1_0_0", "BiosAttributeRegistry",
         {"Registry": "BiosAttributeRegistry.1.0.0", "Location": english("/registries/Bios.json")},
         "/registries/Bios.json"),
        # AMI: another language tag, an ending that is there or is not.
        ("BiosAttributeRegistry", "BiosAttributeRegistry",
         {"Location": [{"Language": "en-US", "Uri": f"{PLACE}.json"}]}, PLACE),
        ("BiosAttributeRegistry", "BiosAttributeRegistry",
         {"Location": [{"Language": "en-US", "Uri": PLACE}]}, f"{PLACE}.json"),
        # HPE.
        ("BiosAttributeRegistryA42.v1_2_60", "BiosAttributeRegistryA42.v1_2_60",
         {"Location": english()}, PLACE),
        # iLO 4.
        ("HpBiosAttributeRegistryP89.1.1.00", "HpBiosAttributeRegistryP89.1.1.00",
         {"Location": english({"extref": PLACE})}, PLACE),
        # Only the file's own Registry property has the name.
        ("BiosAttributeRegistryX.v1_0_0", "Attributes_7",
         {"Registry": "BiosAttributeRegistryX.1.0", "Location": english()}, PLACE),
        # OpenBMC: Bios names none.
        (None, "BiosAttributeRegistry", {"Location": english()}, PLACE),
        # One location instead of a list, without a language, as a URL of the BMC's own name.
        ("BiosAttributeRegistry", "BiosAttributeRegistry",
         {"Location": {"Uri": f"https://bmc-1.lan{PLACE}"}}, PLACE),
        # The member is the registry itself.
        ("BiosAttributeRegistry", "BiosAttributeRegistry", REGISTRY, PLACE),
    ],
)  # fmt: skip
def test_bug_27_and_28_the_registry_is_found_under_every_name(
    name: str | None, member: str, file: dict[str, Any], place: str
) -> None:
    registry_found = found(filed(name, member, file, place))
    assert not registry_found.absent
    assert registry_found.attributes["A"].values == (Value("0", "Disable"), Value("1", "Enable"))


def test_english_comes_before_the_others() -> None:
    location = [
        {"Language": "ja", "Uri": "/ja"},
        {"Language": "en-GB", "Uri": "/gb"},
        {"Language": "en", "Uri": "/en"},
    ]
    file = {"Location": location}
    more = {"/ja": registry(enumeration("A", "x")), "/gb": registry(enumeration("A", "y"))}
    assert found(filed("BiosAttributeRegistry", "BiosAttributeRegistry", file, "/en", **more)).uri == "/en"
    del more["/gb"]
    location.pop()
    assert found(filed("BiosAttributeRegistry", "BiosAttributeRegistry", file, "/z", **more)).uri == "/ja"


def test_a_registry_of_another_machine_is_not_taken_while_there_is_a_better_one() -> None:
    members = [{"@odata.id": f"{REGISTRIES}/BiosAttributeRegistry{one}"} for one in ("A42", "A43")]
    more = {
        REGISTRIES: {"Members": members},
        f"{REGISTRIES}/BiosAttributeRegistryA42": registry(enumeration("Other", "x")),
        f"{REGISTRIES}/BiosAttributeRegistryA43": REGISTRY,
    }
    assert "A" in found(tree({"A": "Disable"}, bios={"AttributeRegistry": None}, more=more)).attributes


def test_no_registry_is_told_with_all_places_and_types_come_from_the_values() -> None:
    none = found(tree({"A": 3, "B": True, "C": "x", "D": None}))
    assert none.absent
    assert [one.type for one in none.attributes.values()] == ["Integer", "Boolean", "String", "String"]
    assert REGISTRIES in none.looked_for
    assert f"{REGISTRIES}/BiosAttributeRegistry.v1_0_0" in none.looked_for
    assert f"{BIOS}/BiosRegistry" in none.looked_for


def test_values_that_the_bios_itself_names_stand_in_for_a_registry() -> None:
    none = found(tree({"NUMA": {"AllowableValues": ["NPS0", "NPS1"], "current_value": "NPS1"}}))
    assert none.attributes["NUMA"].type == "Enumeration"
    assert none.attributes["NUMA"].values == (Value("NPS0"), Value("NPS1"))


def test_a_bmc_that_refuses_the_collection_may_still_have_the_registry() -> None:
    resources = filed("BiosAttributeRegistry", "BiosAttributeRegistry", {"Location": english()})
    script = lambda request: error(405, "x") if request.url.path == REGISTRIES else None  # noqa: E731
    assert not found(resources, script).absent


def test_silence_is_not_absence() -> None:
    def script(request: httpx.Request) -> httpx.ReadError | None:
        return httpx.ReadError("reset") if request.url.path == PLACE else None

    with pytest.raises(BmcUnreachable):
        found(filed("BiosAttributeRegistry", "BiosAttributeRegistry", {"Location": english()}), script)


def test_a_damaged_registry_is_not_absent() -> None:
    resources = filed("BiosAttributeRegistry", "BiosAttributeRegistry", {"Location": english()})
    resources[PLACE] = {"RegistryEntries": {"Attributes": None}}
    with pytest.raises(Malformed, match="without attributes"):
        found(resources)


@pytest.mark.parametrize("status", [403, 500])
def test_a_registry_that_is_refused_is_not_absent(status: int) -> None:
    resources = filed("BiosAttributeRegistry", "BiosAttributeRegistry", {"Location": english()})
    with pytest.raises(Refused):
        found(resources, lambda request: error(status, "x") if request.url.path == PLACE else None)


def test_a_damaged_registry_of_another_kind_is_in_nobody_s_way() -> None:
    def script(request: httpx.Request) -> httpx.Response | None:
        other = request.url.path in (f"{REGISTRIES}/Base.1.5.0", f"{BIOS}/BiosRegistry")
        return httpx.Response(200, html="<html>") if other else None

    name, file = (
        "BiosAttributeRegistryX.v1_0_0",
        {"Registry": "BiosAttributeRegistryX", "Location": english()},
    )
    assert not found(filed(name, "Attributes_7", file), script).absent


def test_a_page_of_html_where_the_registry_was_guessed_to_be_is_no_registry() -> None:
    script = lambda request: httpx.Response(200, html="<html>") if "istr" in request.url.path else None  # noqa: E731
    more = {REGISTRIES: {"Members": []}}
    with FakeBmc(tree({"A": "x"}, more=more), script).connection() as connection:
        bios = read_bios(connection, read_service(connection))
        with pytest.raises(Malformed):
            find_registry(connection, bios)
    guessed = lambda request: script(request) if request.url.path != REGISTRIES else None  # noqa: E731
    assert found(tree({"A": "x"}, more=more), guessed).absent


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("BiosAttributeRegistry.v1_0_3", "biosattributeregistry"),
        ("BiosAttributeRegistry.1.0.0.json", "biosattributeregistry"),
        ("BiosAttributeRegistry1.0", "biosattributeregistry"),
        ("BiosAttributeRegistry", "biosattributeregistry"),
        ("BiosAttributeRegistryA42.v1_2_60", "biosattributeregistrya42"),
        ("BiosAttributeRegistryA43.v1_2_60", "biosattributeregistrya43"),
    ],
)
def test_the_version_goes_and_the_board_stays(name: str, plain: str) -> None:
    assert normalised(name) == plain


# What is in it


def parsed(*attributes: Any, **current: Any) -> Registry:
    return read_registry(registry(*attributes), current)


def test_bug_31_null_and_missing_fields_are_tolerated() -> None:
    entry = {
        "AttributeName": "N",
        "CurrentValue": None,
        "DefaultValue": None,
        "DisplayName": None,
        "LowerBound": None,
        "UpperBound": "0x10",
        "ReadOnly": None,
        "Value": None,
        "Type": None,
    }
    one = parsed(entry, N=3).attributes["N"]
    assert (one.type, one.lower, one.upper, one.read_only, one.display_name) == (
        "Integer",
        None,
        16,
        False,
        "",
    )
    assert one.reset_required is None


def test_what_cannot_be_read_costs_one_attribute_and_is_told() -> None:
    read = parsed(None, {"AttributeName": 7}, {"DisplayName": "x"}, enumeration("A", "x"))
    assert list(read.attributes) == ["A"]
    assert len(read.faults) == 3


def test_booleans_as_words() -> None:
    one = parsed(enumeration("A", "x", ReadOnly="true", Hidden="false", GrayOut="True")).attributes["A"]
    assert (one.read_only, one.hidden, one.gray_out) == (True, False, True)


def test_values_without_one_of_their_names() -> None:
    values = [{"ValueName": None, "ValueDisplayName": "On"}, {"ValueName": "off"}, "Auto", None]
    one = parsed({"AttributeName": "A", "Type": "Enumeration", "Value": values}).attributes["A"]
    assert one.values == (Value("On", "On"), Value("off"), Value("Auto"))


def test_the_same_attribute_twice_counts_once_and_a_different_one_is_doubtful() -> None:
    assert not parsed(enumeration("A", "x"), enumeration("A", "x", DisplayOrder=2)).attributes["A"].twice
    doubtful = parsed(enumeration("A", "x"), enumeration("A", "y"))
    assert doubtful.attributes["A"].twice
    assert "more than once" in doubtful.faults[0]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("SR-IOVSupport#002B", "SR_IOVSupport_0047"),
        ("IntelVTforDirectedI/O(VT-d)#1234", "IntelVTforDirectedI_O_VT_d__1E32"),
        ("Intel(R)VTforDirectedI/O(VT-d)", "IntelVTforDirectedI_O_VT_d__1E32"),
        ("Intel®VTforDirectedI/O(VT-d)", "IntelVTforDirectedI_O_VT_d__1E32"),
        ("Above4GDecoding", "Above4GDecoding_0041"),
    ],
)
def test_bug_27_names_are_the_same_in_spite_of_suffixes_and_marks(one: str, other: str) -> None:
    assert key(one) == key(other)
