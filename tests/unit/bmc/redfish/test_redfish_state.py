"""What can be written: flags as they are, dependencies, batches, phases; and values as a BIOS takes them."""

from __future__ import annotations

from typing import Any

import pytest
from trees import enumeration, registry, rule

from nodeprep.bmc.redfish.registry import Attribute, read_registry
from nodeprep.bmc.redfish.registry_state import RegistryState
from nodeprep.bmc.redfish.values import ValueNotOffered, usual_spelling, wire_value

PROFILE = enumeration("SysProfile", "PerfOptimized", "Custom")
ASPM = enumeration("PcieAspmL1", "Enabled", "Disabled", ReadOnly=True)
NOT_CUSTOM = rule("PcieAspmL1", "ReadOnly", True, "SysProfile NEQ Custom")
NOW = {"SysProfile": "PerfOptimized", "PcieAspmL1": "Disabled"}


def state(current: dict[str, Any], *attributes: Any, rules: Any = ()) -> RegistryState:
    return RegistryState(read_registry(registry(*attributes, dependencies=rules), current), current)


def dell() -> RegistryState:
    return state(NOW, PROFILE, ASPM, rules=[NOT_CUSTOM])


def test_bug_14_read_only_is_a_state_that_the_same_batch_can_lift() -> None:
    assert dell().obstacle("PcieAspmL1") == "PcieAspmL1 is read-only while SysProfile is not Custom"
    batch = {"PcieAspmL1": "Enabled", "SysProfile": "Custom"}
    assert dell().obstacle("PcieAspmL1", batch) == ""
    plan = dell().plan(batch)
    assert plan.refused == {}
    assert list(plan.together) == ["SysProfile", "PcieAspmL1"]
    assert plan.phases == ({"SysProfile": "Custom"}, {"PcieAspmL1": "Enabled"})


def test_bug_14_without_the_batch_it_is_refused_with_what_holds_it() -> None:
    plan = dell().plan({"PcieAspmL1": "Enabled"})
    assert plan.refused == {"PcieAspmL1": "PcieAspmL1 is read-only while SysProfile is not Custom"}
    assert (plan.together, plan.phases) == ({}, ())


def test_bug_14_a_value_that_is_there_already_needs_no_permission() -> None:
    assert dell().plan({"PcieAspmL1": "Disabled"}).refused == {}


def test_read_only_without_a_rule_is_the_nature_of_the_setting() -> None:
    one = state({"Serial": "x", "B": "y"}, {"AttributeName": "Serial", "Type": "String", "ReadOnly": True})
    assert one.obstacle("Serial", {"B": "z"}) == "Serial is read-only"


def test_immutable_is_read_only() -> None:
    assert state({"Serial": "x"}, {"AttributeName": "Serial", "Immutable": True}).obstacle("Serial")


def test_flags_that_are_defaults_are_raised_by_rules() -> None:
    """HPE and Lenovo: the flag says writable, the rule does not."""
    speed = enumeration("Slot1Speed", "Auto", "Gen3")
    port = enumeration("MaxPcieSpeed", "PerPortCtrl", "PcieGen1")
    rules = [rule("Slot1Speed", "GrayOut", "true", "MaxPcieSpeed NEQ PerPortCtrl")]
    one = state({"Slot1Speed": "Auto", "MaxPcieSpeed": "PcieGen1"}, speed, port, rules=rules)
    assert "greyed out" in one.obstacle("Slot1Speed")
    assert one.obstacle("Slot1Speed", {"MaxPcieSpeed": "PerPortCtrl"}) == ""


def test_a_batch_that_locks_its_own_part_is_refused() -> None:
    one = state(
        {"SysProfile": "Custom", "PcieAspmL1": "Disabled"},
        PROFILE,
        {**ASPM, "ReadOnly": False},
        rules=[NOT_CUSTOM],
    )
    plan = one.plan({"SysProfile": "PerfOptimized", "PcieAspmL1": "Enabled"})
    assert list(plan.refused) == ["PcieAspmL1"]
    assert plan.together == {"SysProfile": "PerfOptimized"}


def test_what_the_bios_changes_by_itself_is_told_and_wins() -> None:
    forced = rule("X2Apic", "CurrentValue", "Disabled", "Virtualization EQU Disabled")
    further = rule("Cores", "CurrentValue", "255", "X2Apic EQU Disabled")
    attributes = [enumeration(name, "Enabled", "Disabled") for name in ("Virtualization", "X2Apic")]
    cores = {"AttributeName": "Cores", "Type": "Integer"}
    now = {"Virtualization": "Enabled", "X2Apic": "Enabled", "Cores": 512}
    one = state(now, *attributes, cores, rules=[forced, further])
    plan = one.plan({"Virtualization": "Disabled"})
    assert {name: effect.value for name, effect in plan.effects.items()} == {
        "X2Apic": "Disabled",
        "Cores": "255",
    }
    assert plan.effects["X2Apic"].why == "Virtualization is Disabled"
    refused = one.plan({"Virtualization": "Disabled", "X2Apic": "Enabled"}).refused
    assert refused == {"X2Apic": "X2Apic becomes Disabled when Virtualization is Disabled"}


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


def test_bug_28_an_attribute_that_this_machine_has_not_is_refused_before_it_is_sent() -> None:
    one = state({"B": "x"}, enumeration("A", "x"), enumeration("B", "x"))
    assert "no such setting" in one.plan({"A": "x"}).refused["A"]
    assert "not in the registry" in one.plan({"KCSACP": "x"}).refused["KCSACP"]


def test_an_attribute_that_is_there_twice_is_refused() -> None:
    one = state({"A": "x"}, enumeration("A", "x"), enumeration("A", "y"))
    assert "more than once" in one.plan({"A": "y"}).refused["A"]


# Values


def one_of(entry: Any, **current: Any) -> Attribute:
    return read_registry(registry(entry), current).attributes[entry["AttributeName"]]


def test_values_are_sent_as_the_bios_reports_them() -> None:
    """Supermicro reports ValueDisplayName: 332 of 336 attributes."""
    entries = [enumeration(name, "0=Disable", "1=Enable") for name in "ABC"]
    now = {"A": "Disable", "B": "Enable", "C": None}
    read = read_registry(registry(*entries), now)
    usual = usual_spelling(read, now)
    assert usual == "display"
    assert wire_value(read.attributes["A"], "1", "Disable", usual) == "Enable"
    # Its own present value does not tell: as the others.
    assert wire_value(read.attributes["C"], "Enable", None, usual) == "Enable"


def test_the_standard_s_spelling_where_nothing_speaks_against_it() -> None:
    entry = one_of(enumeration("A", "Gen3=Generation 3", "Auto=Auto"))
    assert wire_value(entry, "Generation 3", "Auto") == "Gen3"


def test_bug_10_values_are_sent_in_the_registry_s_case() -> None:
    assert wire_value(one_of(enumeration("A", "Enabled", "Disabled")), "disabled", "Enabled") == "Disabled"


@pytest.mark.parametrize(
    ("kind", "current", "wanted", "sent"),
    [
        ("Integer", 3, "5", 5),
        ("Integer", "3", 5, "5"),
        ("Boolean", True, "false", False),
        ("Boolean", False, 1, True),
        ("String", "x", 7, "7"),
        ("Integer", None, "5", 5),
    ],
)
def test_bug_05_values_have_the_type_the_bmc_reports(kind: str, current: Any, wanted: Any, sent: Any) -> None:
    value = wire_value(one_of({"AttributeName": "A", "Type": kind}), wanted, current)
    assert (value, type(value)) == (sent, type(sent))


def test_bug_05_enumerations_of_numbers_too() -> None:
    assert wire_value(one_of(enumeration("A", "0", "1")), "1", 0) == 1
    assert wire_value(one_of(enumeration("A", "true", "false")), True, False) is True


@pytest.mark.parametrize(
    ("entry", "wanted"),
    [
        (enumeration("A", "Enabled", "Disabled"), "Auto"),
        ({"AttributeName": "A", "Type": "Integer", "LowerBound": 0, "UpperBound": 7}, 8),
        ({"AttributeName": "A", "Type": "Integer", "LowerBound": 2, "UpperBound": 7}, 1),
        ({"AttributeName": "A", "Type": "Integer", "LowerBound": 0, "ScalarIncrement": 4}, 6),
        ({"AttributeName": "A", "Type": "Integer"}, "many"),
        ({"AttributeName": "A", "Type": "Integer"}, True),
        ({"AttributeName": "A", "Type": "Boolean"}, "maybe"),
        ({"AttributeName": "A", "Type": "String", "MaxLength": 2}, "abc"),
        ({"AttributeName": "A", "Type": "Password"}, "x"),
        (enumeration("A", "Enabled"), None),
    ],
)
def test_bug_16_nonsense_is_refused_before_it_is_sent(entry: Any, wanted: Any) -> None:
    with pytest.raises(ValueNotOffered):
        wire_value(one_of(entry), wanted, None)


def test_a_present_value_outside_its_own_enumeration_can_be_kept() -> None:
    entry = one_of(enumeration("PrmSgxSize", "128M", "256M"))
    assert wire_value(entry, "Auto (0)", "Auto (0)") == "Auto (0)"
    with pytest.raises(ValueNotOffered):
        wire_value(entry, "Auto (0)", "128M")


def test_the_name_of_one_value_may_be_the_display_of_another() -> None:
    entry = one_of(enumeration("A", "0=1", "1=2"))
    assert wire_value(entry, "1", "0") == "1"


def test_bug_15_no_word_about_a_reset_is_not_no_reset() -> None:
    assert one_of(enumeration("A", "x")).reset_required is None
    assert one_of(enumeration("A", "x", ResetRequired=False)).reset_required is False
