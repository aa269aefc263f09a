"""What can be written: flags as they are, dependencies, batches; and values as a BIOS takes them."""

from __future__ import annotations

from typing import Any

import pytest
from trees import enumeration, registry, rule

from nodeprep.bmc.bios import BiosView
from nodeprep.bmc.bios.state import Obstacle, obstacle
from nodeprep.bmc.redfish.registry import Attribute, Scalar, Value, read_registry
from nodeprep.bmc.redfish.registry_state import RegistryState
from nodeprep.bmc.redfish.values import spelt, usual_spelling, value_of

PROFILE = enumeration("SysProfile", "PerfOptimized", "Custom")
ASPM = enumeration("PcieAspmL1", "Enabled", "Disabled", ReadOnly=True)
NOT_CUSTOM = rule("PcieAspmL1", "ReadOnly", True, "SysProfile NEQ Custom")
NOW = {"SysProfile": "PerfOptimized", "PcieAspmL1": "Disabled"}


def view(current: dict[str, Any], *attributes: Any, rules: Any = ()) -> BiosView:
    return BiosView(
        registry=read_registry(registry(*attributes, dependencies=rules), current), current=current
    )


def state(current: dict[str, Any], *attributes: Any, rules: Any = ()) -> RegistryState:
    return view(current, *attributes, rules=rules).state


def dell() -> BiosView:
    return view(NOW, PROFILE, ASPM, rules=[NOT_CUSTOM])


def hindrance(one: BiosView, name: str, **batch: Scalar) -> Obstacle | None:
    return obstacle(one, one.registry.attributes[name], batch, {})


def why(one: BiosView, name: str, **batch: Scalar) -> str:
    found = hindrance(one, name, **batch)
    return "" if found is None else found.reason


def test_bug_14_read_only_is_a_state_that_the_same_batch_can_lift() -> None:
    assert why(dell(), "PcieAspmL1") == "PcieAspmL1 is read-only while SysProfile is not Custom"
    found = hindrance(dell(), "PcieAspmL1", SysProfile="Custom")
    assert found is not None
    assert found.second_phase
    assert "SysProfile is not Custom" in found.reason


def test_read_only_without_a_rule_is_the_nature_of_the_setting() -> None:
    one = view({"Serial": "x", "B": "y"}, {"AttributeName": "Serial", "Type": "String", "ReadOnly": True})
    assert "names no condition that would lift it" in why(one, "Serial", B="z")


def test_immutable_is_read_only() -> None:
    assert why(view({"Serial": "x"}, {"AttributeName": "Serial", "Immutable": True}), "Serial")


def test_flags_that_are_defaults_are_raised_by_rules() -> None:
    """HPE and Lenovo: the flag says writable, the rule does not."""
    speed = enumeration("Slot1Speed", "Auto", "Gen3")
    port = enumeration("MaxPcieSpeed", "PerPortCtrl", "PcieGen1")
    rules = [rule("Slot1Speed", "GrayOut", "true", "MaxPcieSpeed NEQ PerPortCtrl")]
    one = view({"Slot1Speed": "Auto", "MaxPcieSpeed": "PcieGen1"}, speed, port, rules=rules)
    assert "grayed out" in why(one, "Slot1Speed")
    found = hindrance(one, "Slot1Speed", MaxPcieSpeed="PerPortCtrl")
    assert found is not None
    assert found.second_phase


def test_a_batch_that_locks_its_own_part_is_refused() -> None:
    now = {"SysProfile": "Custom", "PcieAspmL1": "Disabled"}
    one = view(now, PROFILE, {**ASPM, "ReadOnly": False}, rules=[NOT_CUSTOM])
    assert why(one, "PcieAspmL1") == ""
    assert "becomes read-only by this same plan" in why(one, "PcieAspmL1", SysProfile="PerfOptimized")


def test_what_the_bios_changes_by_itself_is_told() -> None:
    forced = rule("X2Apic", "CurrentValue", "Disabled", "Virtualization EQU Disabled")
    further = rule("Cores", "CurrentValue", "255", "X2Apic EQU Disabled")
    attributes = [enumeration(name, "Enabled", "Disabled") for name in ("Virtualization", "X2Apic")]
    cores = {"AttributeName": "Cores", "Type": "Integer"}
    now = {"Virtualization": "Enabled", "X2Apic": "Enabled", "Cores": 512}
    effects = state(now, *attributes, cores, rules=[forced, further]).effects({"Virtualization": "Disabled"})
    assert {name: effect.value for name, effect in effects.items()} == {"X2Apic": "Disabled", "Cores": "255"}
    assert effects["X2Apic"].why == "Virtualization is Disabled"


def test_settings_that_force_each_other_end() -> None:
    rules = [
        rule("A", "CurrentValue", "x", "B EQU y"),
        rule("B", "CurrentValue", "y", "A EQU z"),
        rule("B", "CurrentValue", "n", "A EQU x"),
        rule("A", "CurrentValue", "z", "B EQU n"),
    ]
    one = state(
        {"A": "0", "B": "0"}, enumeration("A", "0", "x", "z"), enumeration("B", "0", "y", "n"), rules=rules
    )
    assert set(one.effects({"A": "z"})) <= {"A", "B"}


@pytest.mark.parametrize(
    ("terms", "late", "a", "b", "locked"),
    [
        # Lenovo: the term stands at the earlier one of two.
        ("OR", False, "1", "0", True),
        ("AND", False, "1", "0", False),
        ("AND", False, "1", "1", True),
        # HPE, AMI: at the later one.
        ("OR", True, "0", "1", True),
        ("AND", True, "1", "0", False),
        ("AND", True, "1", "1", True),
        # Dell: none, and OR is meant.
        ("", False, "1", "0", True),
        ("", False, "0", "1", True),
        ("", False, "0", "0", False),
    ],
)
def test_terms_of_conditions(terms: str, late: bool, a: str, b: str, locked: bool) -> None:
    both = rule("C", "ReadOnly", True, "A EQU 1", "B EQU 1", terms=terms, late=late)
    one = state(
        {"A": a, "B": b, "C": "x"}, *(enumeration(name, "0", "1", "x") for name in "ABC"), rules=[both]
    )
    assert one.flag("C", "ReadOnly").on is locked


def test_dependency_for_may_name_the_source() -> None:
    lock = rule("GBT0135", "GrayOut", "true", "SYSACS EQU 1", DependencyFor="SYSACS")
    one = state({"SYSACS": 1, "GBT0135": "No"}, enumeration("GBT0135", "No", "Yes"), rules=[lock])
    assert one.flag("GBT0135", "GrayOut").on
    assert not one.flag("SYSACS", "GrayOut").on


def test_a_condition_on_what_is_not_known_decides_nothing() -> None:
    lock = rule("A", "ReadOnly", True, "Gone EQU 1")
    assert not state({"A": "x"}, enumeration("A", "x", "y"), rules=[lock]).flag("A", "ReadOnly").on
    kept = state({"A": "x"}, enumeration("A", "x", "y", ReadOnly=True), rules=[lock])
    assert kept.flag("A", "ReadOnly", {"A": "y"}).on
    novalue = rule("A", "ReadOnly", True, "B EQU 1")
    del novalue["Dependency"]["MapFrom"][0]["MapFromValue"]
    assert not state({"A": "x", "B": "1"}, enumeration("A", "x"), rules=[novalue]).flag("A", "ReadOnly").on


@pytest.mark.parametrize(
    ("condition", "locked"),
    [
        ("N GTR 4", True),
        ("N GEQ 5", True),
        ("N LSS 5", False),
        ("N LEQ 5", True),
        ("N EQU 5", True),
        ("N ODD 1", False),
    ],
)
def test_numbers_are_compared_as_numbers(condition: str, locked: bool) -> None:
    lock = rule("A", "ReadOnly", True, condition)
    one = state(
        {"A": "x", "N": 5}, enumeration("A", "x"), {"AttributeName": "N", "Type": "Integer"}, rules=[lock]
    )
    assert one.flag("A", "ReadOnly").on is locked


def test_conditions_hold_in_both_spellings_of_a_value() -> None:
    """Supermicro: the rule says ValueName "0", the BIOS reports "Disable"."""
    lock = rule("ACS", "GrayOut", True, "VTd EQU 0")
    one = state({"VTd": "Disable", "ACS": "Disable"}, enumeration("VTd", "0=Disable", "1=Enable"),
                enumeration("ACS", "0=Disable", "1=Enable"), rules=[lock])  # fmt: skip
    assert one.flag("ACS", "GrayOut").on
    assert not one.flag("ACS", "GrayOut", {"VTd": "Enable"}).on


@pytest.mark.parametrize(
    "entry", [None, {}, {"Dependency": {"MapFrom": [{}], "MapToAttribute": "A", "MapToProperty": "ReadOnly"}}]
)
def test_a_dependency_that_cannot_be_read_is_told(entry: Any) -> None:
    read = read_registry(registry(enumeration("A", "x"), dependencies=[entry]), {"A": "x"})
    assert read.faults == ("RegistryEntries.Dependencies[0] cannot be read",)


def test_an_attribute_that_is_there_twice_is_refused() -> None:
    one = view({"A": "x"}, enumeration("A", "x"), enumeration("A", "y"))
    assert "in the registry twice" in why(one, "A")


# Values


def one_of(entry: Any, **current: Any) -> Attribute:
    return read_registry(registry(entry), current).attributes[entry["AttributeName"]]


def sent(attribute: Attribute, name: str, current: Any, usual: Any = "name") -> Scalar:
    """What goes over the wire for the value of this name."""
    value = next(one for one in attribute.values if one.name == name)
    return spelt(value, attribute, current, usual)


def test_values_are_sent_as_the_bios_reports_them() -> None:
    """Supermicro reports ValueDisplayName: 332 of 336 attributes."""
    entries = [enumeration(name, "0=Disable", "1=Enable") for name in "ABC"]
    now = {"A": "Disable", "B": "Enable", "C": None}
    read = read_registry(registry(*entries), now)
    usual = usual_spelling(read, now)
    assert usual == "display"
    assert sent(read.attributes["A"], "1", "Disable", usual) == "Enable"
    # Its own present value does not tell: as the others.
    assert sent(read.attributes["C"], "1", None, usual) == "Enable"


def test_the_standard_s_spelling_where_nothing_speaks_against_it() -> None:
    assert sent(one_of(enumeration("A", "Gen3=Generation 3", "Auto=Auto")), "Gen3", "Auto") == "Gen3"


@pytest.mark.parametrize(
    ("values", "name", "current", "value"),
    [
        (("0", "1"), "1", 0, 1),
        (("0", "1"), "1", "0", "1"),
        (("-1", "5"), "-1", 5, -1),
        (("true", "false"), "true", False, True),
        (("True", "False"), "False", True, False),
        (("Enabled", "Disabled"), "Disabled", "Enabled", "Disabled"),
    ],
)
def test_bug_05_values_have_the_type_the_bmc_reports(
    values: tuple[str, ...], name: str, current: Any, value: Any
) -> None:
    found = sent(one_of(enumeration("A", *values)), name, current)
    assert (found, type(found)) == (value, type(value))


def test_the_name_of_one_value_may_be_the_display_of_another() -> None:
    entry = one_of(enumeration("A", "0=1", "1=2"))
    assert value_of(entry, "1") == Value("1", "2")
    assert value_of(entry, "2") == Value("1", "2")
    assert value_of(entry, "3") is None


def test_bug_15_no_word_about_a_reset_is_not_no_reset() -> None:
    assert one_of(enumeration("A", "x")).reset_required is None
    assert one_of(enumeration("A", "x", ResetRequired=False)).reset_required is False
