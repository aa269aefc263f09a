"""What the node is asked to write, and what a plan says as a whole."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from nodeprep.knobs import all_knobs, build_plan
from nodeprep.model.codec import decode
from nodeprep.model.facts import NodeFacts
from nodeprep.model.plan import Plan
from nodeprep.model.spec import NodeSpec
from nodeprep.profiles import resolve, settings_from_variables
from nodeprep.workflows.apply import _settings

FACTS = Path(__file__).parents[2] / "cases" / "knobs" / "facts.json"
KNOBS = {knob.id: knob for knob in all_knobs()}


def planned(policy: dict[str, Any], **facts: Any) -> tuple[NodeSpec, Plan]:
    document = {**json.loads(FACTS.read_text()), **facts}
    node = decode(json.dumps(document), NodeFacts, source="facts")
    settings = settings_from_variables({"nodeprep_policy": policy}, source="x", known_checks=())
    spec = resolve("node07", settings, node, today=date(2026, 11, 30))
    return spec, build_plan(spec, node)


def settings(knob: str, policy: dict[str, Any]) -> Any:
    """What this knob alone sends."""
    spec, plan = planned(policy)
    mine = replace(plan, changes=tuple(change for change in plan.changes if change.knob == knob))
    session: Any = SimpleNamespace(specs={"node07": spec})
    return _settings(session, "node07", mine)


def test_the_limit_is_written_as_the_policy_gives_it() -> None:
    assert settings("gpu_power_limit", {"gpu": {"power_limit": "90%"}}) == {"gpu_power": {"limit": "90%"}}


def test_persistence_is_written_as_the_policy_gives_it() -> None:
    assert settings("gpu_persistence", {"gpu": {"persistence": False}}) == {
        "gpu_power": {"persistence": False}
    }


@pytest.mark.parametrize(
    ("limit", "sent"), [({"power_limit": "90%"}, "90%"), ({}, "none")], ids=["a limit", "no limit"]
)
def test_what_is_set_at_boot_is_always_all_of_the_policy(limit: dict[str, str], sent: str) -> None:
    assert settings("gpu_power_boot", {"gpu": {**limit, "persistence": False}}) == {
        "gpu_power": {"limit": sent, "persistence": False}
    }


@pytest.mark.parametrize(
    ("gpu", "knobs", "sent"),
    [
        ({"power_limit": "90%"}, {"gpu_power_limit"}, {"limit": "90%"}),
        ({"persistence": False}, {"gpu_persistence"}, {"persistence": False}),
        (
            {"power_limit": "90%", "persistence": False},
            {"gpu_power_boot", "gpu_power_limit", "gpu_persistence"},
            {"limit": "90%", "persistence": False},
        ),
        (
            {"persistence": False},
            {"gpu_power_boot", "gpu_persistence"},
            {"limit": "none", "persistence": False},
        ),
    ],
)
def test_knobs_that_are_due_send_one_group_together(
    gpu: dict[str, Any], knobs: set[str], sent: dict[str, Any]
) -> None:
    spec, plan = planned({"gpu": gpu})
    due = replace(plan, changes=tuple(change for change in plan.changes if change.knob in knobs))
    session: Any = SimpleNamespace(specs={"node07": spec})
    assert _settings(session, "node07", due) == {"gpu_power": sent}


def test_a_link_pin_names_the_gpus_that_are_due() -> None:
    assert settings("pcie_link", {"pcie_link": {"gen": 4}}) == {
        "pcie_link": {"gen": 4, "gpus": ["0000:17:00.0", "0000:3b:00.0"]}
    }
    assert settings("pcie_link", {"pcie_link": {"gen": 4, "method": "bios"}}) == {}


def test_a_link_pin_that_the_policy_no_longer_names_is_taken_away() -> None:
    driver = json.loads(FACTS.read_text())["driver"]
    unit = {"enabled": True, "gen": 4, "ports": ["0000:16:01.0"]}
    spec, plan = planned({}, driver={**driver, "pcie_link_unit": {"state": "ok", "value": unit}})
    due = tuple(change for change in plan.with_status("change") if change.knob == "pcie_link")
    assert [change.subject for change in due] == ["0000:17:00.0"]
    write = KNOBS["pcie_link"].settings
    assert write is not None
    assert write(spec, due) == {"pcie_link": {"state": "absent"}}


def test_a_link_pin_waits_for_a_reboot_only_under_a_driver() -> None:
    pci = json.loads(FACTS.read_text())["pci"]
    pci["devices"]["value"][1]["driver"] = {"state": "ok", "value": ""}
    _, plan = planned({"pcie_link": {"gen": 4}}, pci=pci)
    due = [change for change in plan.with_status("change") if change.knob == "pcie_link"]
    assert [change.needs_reboot for change in due] == [False, True]


@pytest.mark.parametrize("knob", ["gpu_power_limit", "gpu_persistence"])
def test_nothing_is_written_when_nothing_is_due(knob: str) -> None:
    assert settings(knob, {"gpu": {"power_limit": "650W"}}) == {}


def test_a_trial_gets_what_is_due_and_not_what_a_guard_refuses() -> None:
    asked = {"present": ["quiet", "acpi=off"], "replace": ["console=ttyS1"], "absent": ["iommu"]}
    assert settings("kernel_args", {"kernel_args": asked}) == {
        "kernel_args": {
            "present": ["quiet"],
            "absent": ["iommu"],
            "replace": ["console=ttyS1"],
            "accept_aer_loss": False,
        }
    }


@pytest.mark.parametrize(
    ("policy", "accepted"),
    [
        ({"present": ["pcie_aspm=off", "quiet"]}, False),
        ({"present": ["pcie_aspm=off", "quiet"], "aer_ownership": "leave"}, True),
        ({"present": ["quiet"]}, False),
    ],
)
def test_lost_aer_is_accepted_only_where_it_was_asked_for(policy: dict[str, Any], accepted: bool) -> None:
    assert settings("kernel_args", {"kernel_args": policy})["kernel_args"]["accept_aer_loss"] is accepted


def test_nothing_is_written_by_what_this_version_cannot_write() -> None:
    writers = {knob.id for knob in all_knobs() if knob.settings is not None}
    assert writers == {
        "bios",
        "gpu_power_boot",
        "gpu_power_limit",
        "gpu_persistence",
        "kernel_args",
        "pcie_link",
    }
    _, plan = planned({"bios": {"iommu": "disabled"}, "kernel_args": {"present": ["quiet"]}})
    assert {change.knob for change in plan.with_status("change")} <= writers


def test_a_plan_names_node_profile_and_policy() -> None:
    spec, plan = planned({}, simulated=True)
    assert (plan.host, plan.profile, plan.simulated) == ("node07", "h200", True)
    assert plan.policy_digest == spec.policy_digest


def test_a_node_as_wanted_is_in_its_desired_state() -> None:
    _, plan = planned({"gpu": {"power_limit": "650W"}})
    assert plan.in_desired_state
    assert {change.knob for change in plan.changes} == {
        "gpu_ecc",
        "gpu_persistence",
        "gpu_power_boot",
        "gpu_power_limit",
        "kernel_args",
        "pcie_link",
    }


@pytest.mark.parametrize(
    "policy",
    [
        {"gpu": {"power_limit": "90%"}},
        {"gpu": {"power_limit": "1%"}},
        {"bios": {"iommu": "disabled"}},
        {"pcie_link": {"gen": 4}},
        {"kernel_args": {"present": ["quiet"]}},
        {"gpu": {"ecc": False}},
    ],
)
def test_anything_else_is_not(policy: dict[str, Any]) -> None:
    assert not planned(policy)[1].in_desired_state


def test_the_plan_is_the_same_each_time() -> None:
    assert planned({})[1] == planned({})[1]
