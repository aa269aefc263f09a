"""Each case of tests/cases/bios: a small BIOS of some vendor, and what the plan must say of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from nodeprep.bmc.bios import BiosView, knobs, parse_settings, plan, show
from nodeprep.bmc.redfish.registry import no_registry, read_registry
from nodeprep.model.bios import BiosKnobPlan, BiosMachine, BiosPlan

CASES = Path(__file__).parents[3] / "cases" / "bios"
FILES = sorted(CASES.glob("*.yaml"))


def view_of(case: dict[str, Any]) -> BiosView:
    attributes = case["attributes"]
    current = {name: entry["current"] for name, entry in attributes.items() if "current" in entry}
    pending = {name: entry["pending"] for name, entry in attributes.items() if "pending" in entry}
    if case.get("registry") == "absent":
        offered = {name: tuple(entry["values"]) for name, entry in attributes.items() if "values" in entry}
        return BiosView(registry=no_registry(current, offered), current=current, pending=pending)
    body = {
        "RegistryEntries": {
            "Attributes": [_attribute(name, entry) for name, entry in attributes.items()],
            "Dependencies": [_dependency(entry) for entry in case.get("dependencies", ())],
        }
    }
    registry = read_registry(body, current)
    assert not registry.faults
    return BiosView(registry=registry, current=current, pending=pending)


def machine_of(case: dict[str, Any]) -> BiosMachine:
    return BiosMachine(vendor=case["bmc"]["vendor"], model="", bios="", bmc_firmware="")


def planned(case: dict[str, Any]) -> BiosPlan:
    return plan(
        machine_of(case),
        view_of(case),
        parse_settings(case["set"]),
        logical_cpus=case.get("logical_cpus"),
        blocked_by=tuple(case.get("blocked_by", ())),
    )


def _attribute(name: str, entry: dict[str, Any]) -> dict[str, Any]:
    values = [value if isinstance(value, list) else [value, value] for value in entry.get("values", ())]
    return {
        "AttributeName": name,
        "DisplayName": entry.get("display"),
        "MenuPath": entry.get("menu"),
        "HelpText": entry.get("help"),
        "Type": entry.get("type") or ("Enumeration" if values else None),
        "Value": [{"ValueName": value, "ValueDisplayName": shown} for value, shown in values],
        "ReadOnly": entry.get("read_only", False),
        "Hidden": entry.get("hidden", False),
        "GrayOut": entry.get("gray_out", False),
    }


def _dependency(entry: dict[str, Any]) -> dict[str, Any]:
    sources = [("EQU", *pair) for pair in entry.get("when", {}).items()]
    sources += [("NEQ", *pair) for pair in entry.get("unless", {}).items()]
    name, aspect, value = entry["then"]
    return {
        "Type": "Map",
        "DependencyFor": name,
        "Dependency": {
            "MapFrom": [
                {
                    "MapFromAttribute": source,
                    "MapFromProperty": "CurrentValue",
                    "MapFromCondition": operator,
                    "MapFromValue": wanted,
                }
                for operator, source, wanted in sources
            ],
            "MapToAttribute": name,
            "MapToProperty": aspect,
            "MapToValue": value,
        },
    }


def check(entry: BiosKnobPlan, wanted: dict[str, Any]) -> None:
    assert entry.status == wanted["status"], entry.reason
    if "attributes" in wanted:
        found = {one.name: one.value for one in entry.attributes}
        assert found == wanted["attributes"]
        assert {type(value) for value in found.values()} == {
            type(one) for one in wanted["attributes"].values()
        }
    elif entry.status in ("ok", "change"):
        pytest.fail("the case does not say which attributes")
    if "scopes" in wanted:
        assert [one.scope for one in entry.attributes] == wanted["scopes"]
    if "phases" in wanted:
        assert [one.phase for one in entry.attributes] == wanted["phases"]
    if "candidates" in wanted:
        assert [one.name for one in entry.candidates] == wanted["candidates"]
    assert wanted.get("reason", "") in entry.reason
    assert entry.reason
    if "risk" in wanted:
        assert any(wanted["risk"] in risk for risk in entry.risks), entry.risks


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_case(file: Path) -> None:
    case = yaml.safe_load(file.read_text())
    found = planned(case)
    assert [entry.knob for entry in found.knobs] == list(case["expect"])
    for entry in found.knobs:
        check(entry, case["expect"][entry.knob])
    assert found.needs_reset == any(entry.status == "change" for entry in found.knobs)
    assert found.registry == case.get("registry", "found")
    assert found.blocked_by == tuple(case.get("blocked_by", ()))
    if "write" in case:
        assert found.to_write(phase=1) == case["write"]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_show_tells_of_every_knob_and_attribute(file: Path) -> None:
    case = yaml.safe_load(file.read_text())
    view = view_of(case)
    found = show(machine_of(case), view)
    assert [entry.knob for entry in found.knobs] == list(knobs())
    assert [entry.name for entry in found.attributes] == list(view.current)
    by_knob = {entry.knob: entry for entry in found.knobs}
    for entry in planned(case).knobs:
        if entry.status == "ok" and by_knob[entry.knob].found:
            assert by_knob[entry.knob].value in (entry.wanted, "auto", "mixed")
        if entry.status == "ambiguous" and not entry.slots:
            assert not by_knob[entry.knob].found


def test_every_status_has_a_case() -> None:
    statuses = {
        wanted["status"] for file in FILES for wanted in yaml.safe_load(file.read_text())["expect"].values()
    }
    assert statuses == {"ok", "change", "unsupported", "refused", "ambiguous"}
