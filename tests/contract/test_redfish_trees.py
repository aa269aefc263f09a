"""The Redfish client over trees that real BMCs served: Dell, HPE, Lenovo and Gigabyte."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from nodeprep.bmc.bios import BiosView
from nodeprep.bmc.bios.state import obstacle
from nodeprep.bmc.redfish.bios import BiosSettings, read_bios
from nodeprep.bmc.redfish.registry import Registry
from nodeprep.bmc.redfish.registry_finder import find_registry
from nodeprep.bmc.redfish.registry_state import RegistryState
from nodeprep.bmc.redfish.service import Service, read_service
from nodeprep.bmc.redfish.values import spelt, usual_spelling, value_of

ROOT = Path(__file__).parents[2]
TREES = ROOT.parent / "shared" / "field-data" / "redfish"
sys.path.insert(0, str(ROOT / "tests" / "unit" / "bmc" / "redfish"))

from fake_redfish import FakeBmc  # noqa: E402

pytestmark = pytest.mark.skipif(not TREES.is_dir(), reason=f"the real trees are not at {TREES}")

REDACTED = "REDACTED"
Read = tuple[FakeBmc, Service, BiosSettings, Registry]
_read: dict[str, Read] = {}


def read(name: str) -> Read:
    if name not in _read:
        bmc = FakeBmc(json.loads((TREES / f"{name}.json").read_text()))
        with bmc.connection() as connection:
            service = read_service(connection)
            bios = read_bios(connection, service)
            _read[name] = (bmc, service, bios, find_registry(connection, bios))
    return _read[name]


ALL = ("dell", "gigabyte", "hpe", "lenovo")


@pytest.mark.parametrize(
    ("name", "model", "bios", "firmware"),
    [
        ("dell", "PowerEdge R750", "1.8.2", "6.00.30.00"),
        ("gigabyte", "H262-Z63-00", "C27", "12.84.13"),
        ("hpe", "ProLiant DL385 Gen10 Plus v2", "A42 v2.60 (08/11/2022)", "iLO 5 v2.72"),
        ("lenovo", "ThinkSystem SR670 V2", "U8E122J", "TGBT42S 2.83 2023-07-05"),
    ],
)
def test_who_it_is(name: str, model: str, bios: str, firmware: str) -> None:
    identity = read(name)[1].identity
    assert (identity.vendor, identity.model, identity.bios, identity.bmc_firmware) == (
        name,
        model,
        bios,
        firmware,
    )


@pytest.mark.parametrize(
    ("name", "uri", "count", "dependencies"),
    [
        ("dell", "/redfish/v1/Systems/System.Embedded.1/Bios/BiosRegistry", 682, 588),
        ("gigabyte", "/redfish/v1/Registries/BiosAttributeRegistry.json", 549, 65),
        ("hpe", "/redfish/v1/registrystore/registries/en/biosattributeregistrya42.v1_2_60", 402, 723),
        # 353 entries, five of them twice, and the same.
        ("lenovo", "/redfish/v1/schemas/registries/BiosAttributeRegistry.1.0.0.json", 348, 95),
    ],
)
def test_bug_27_the_registry_is_found(name: str, uri: str, count: int, dependencies: int) -> None:
    found = read(name)[3]
    assert (found.absent, found.uri) == (False, uri)
    assert (len(found.attributes), len(found.dependencies)) == (count, dependencies)
    assert found.faults == ()


@pytest.mark.parametrize(
    ("name", "current", "place"),
    [
        ("dell", 455, "/redfish/v1/Systems/System.Embedded.1/Bios/Settings"),
        # It names none and none is in the tree.
        ("gigabyte", 550, "/redfish/v1/Systems/Self/Bios/SD"),
        ("hpe", 277, "/redfish/v1/systems/1/bios/settings/"),
        ("lenovo", 348, "/redfish/v1/Systems/1/Bios/Pending"),
    ],
)
def test_bug_01_and_06_settings_in_effect_and_staged(name: str, current: int, place: str) -> None:
    bios = read(name)[2]
    assert (len(bios.current), bios.write_uris[0]) == (current, place)
    # HPE and Lenovo list all settings as pending; none of them differs.
    assert bios.pending == {}
    assert not bios.flat


def test_bug_24_the_etag_is_that_of_the_settings() -> None:
    etags = {name: read(name)[2].settings for name in ALL}
    assert {name: found.etag if found else None for name, found in etags.items()} == {
        "dell": "",
        "gigabyte": None,
        # Not 1103906B, which stands in @Redfish.Settings.
        "hpe": 'W/"0C5479D434EEDDDDDD151ED9058F8497"',
        "lenovo": '"8bcc5687155e22f05defb6"',
    }


def test_bug_04_apply_times() -> None:
    assert {name: read(name)[2].apply_times for name in ALL} == {
        "dell": ("OnReset", "AtMaintenanceWindowStart", "InMaintenanceWindowOnReset"),
        "gigabyte": (),
        "hpe": (),
        "lenovo": ("OnReset",),
    }


@pytest.mark.parametrize("name", ALL)
def test_bug_25_no_session_stays_behind(name: str) -> None:
    bmc = read(name)[0]
    assert (bmc.opened, bmc.sessions) == (1, {})


@pytest.mark.parametrize("name", ALL)
def test_the_standard_s_spelling_is_told_from_the_values(name: str) -> None:
    _, _, bios, registry = read(name)
    assert usual_spelling(registry, bios.current) == "name"


@pytest.mark.parametrize("name", ALL)
def test_every_value_of_every_enumeration_is_taken_by_its_name(name: str) -> None:
    _, _, bios, registry = read(name)
    for attribute in registry.attributes.values():
        current = bios.current.get(attribute.name)
        if isinstance(current, str):
            sent = [spelt(value, attribute, current, "name") for value in attribute.values]
            assert sent == [value.name for value in attribute.values]


def test_bug_14_a_dell_s_read_only_is_explained_by_its_dependencies() -> None:
    """Its flags are those of the moment, so the rules must lead to the same: OR where no term is given."""
    _, _, bios, registry = read("dell")
    state = RegistryState(registry, bios.current)
    by_rule = {one.attribute for one in registry.dependencies if one.aspect == "ReadOnly"}
    shown = [one for name, one in registry.attributes.items() if name in by_rule and name in bios.current]
    wrong = [one.name for one in shown if state.flag(one.name, "ReadOnly").on != one.read_only]
    assert len(shown) > 150
    # Its rule says read-only, its flag does not; refusing is the safer of the two.
    assert wrong == ["OneTimeUefiBootSeqDev"]


def test_bug_14_a_dell_s_aspm_needs_the_custom_profile_first() -> None:
    _, _, bios, registry = read("dell")
    view = BiosView(registry=registry, current=bios.current)
    aspm = registry.attributes["PcieAspmL1"]
    found = obstacle(view, aspm, {}, {})
    assert found is not None
    assert found.reason == "PcieAspmL1 is read-only while SysProfile is not Custom"
    then = obstacle(view, aspm, {"SysProfile": "Custom"}, {})
    assert then is not None
    assert then.second_phase


def test_a_dell_without_virtualization_loses_more_than_that() -> None:
    _, _, bios, registry = read("dell")
    current = {**bios.current, "ProcX2Apic": "Enabled", "KernelDmaProtection": "Enabled"}
    effects = RegistryState(registry, current).effects({"ProcVirtualization": "Disabled"})
    assert {name: effect.value for name, effect in effects.items()}["ProcX2Apic"] == "Disabled"


def test_a_gigabyte_s_dependencies_name_their_source_and_lock_nothing_for_an_administrator() -> None:
    _, _, bios, registry = read("gigabyte")
    assert {one.attribute for one in registry.dependencies} >= {"GBT0135", "FBO201"}
    view = BiosView(registry=registry, current=bios.current)
    assert obstacle(view, registry.attributes["GBT0135"], {}, {}) is None


def test_an_hpe_s_greyed_settings_are_told_although_their_flags_do_not() -> None:
    _, _, bios, registry = read("hpe")
    state = RegistryState(registry, bios.current)
    assert not registry.attributes["IpmiWatchdogTimerAction"].gray_out
    assert state.flag("IpmiWatchdogTimerAction", "GrayOut").on


def test_bug_31_nulls_of_a_dell() -> None:
    bios = read("dell")[2]
    assert {name for name, value in bios.current.items() if value is None} == {"SysPassword", "SetupPassword"}


def redacted(bios: BiosSettings) -> list[Any]:
    return [name for name, value in bios.current.items() if value == REDACTED]


def test_values_outside_their_enumeration_are_no_reason_to_stop() -> None:
    _, _, bios, registry = read("lenovo")
    outside = [name for name in redacted(bios) if registry.attributes[name].values]
    assert outside
    for name in outside:
        attribute = registry.attributes[name]
        assert value_of(attribute, REDACTED) is None
        assert spelt(attribute.values[0], attribute, REDACTED, "name") == attribute.values[0].name
