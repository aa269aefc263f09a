"""Policy, profile and the node's own GPUs make the specification of one node."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from nodeprep.errors import PolicyError
from nodeprep.model.codec import decode, digest
from nodeprep.model.facts import NodeFacts
from nodeprep.model.spec import NodeSpec
from nodeprep.profiles import resolve, select_profile, settings_from_variables

FACTS = Path(__file__).parents[2] / "cases" / "knobs" / "facts.json"
TODAY = date(2026, 11, 30)
HUNG = {"state": "error", "detail": "NVML hung"}


def facts(*names: Any) -> NodeFacts:
    """The node with GPUs of the given names; a name may be a whole reading."""
    document = json.loads(FACTS.read_text())
    gpus = document["nvml"]["gpus"]["value"]
    for gpu, name in zip(gpus, names, strict=False):
        gpu["name"] = name if isinstance(name, dict) else {"state": "ok", "value": name}
    return decode(json.dumps(document), NodeFacts, source="facts")


def without_nvml() -> NodeFacts:
    document = json.loads(FACTS.read_text())
    document["nvml"]["gpus"] = HUNG
    return decode(json.dumps(document), NodeFacts, source="facts")


def spec(policy: dict[str, Any] | None = None, profile: str = "auto", host: str = "node07") -> NodeSpec:
    variables = {"nodeprep_profile": profile, "nodeprep_policy": policy or {}}
    settings = settings_from_variables(variables, source="x", known_checks=("a", "b"))
    return resolve(host, settings, facts(), today=TODAY)


def test_auto_goes_by_the_gpus() -> None:
    assert spec().profile.id == "h200"
    assert select_profile(facts("NVIDIA A100-SXM4-80GB", "NVIDIA A100-SXM4-80GB")).id == "a100"
    assert select_profile(facts("NVIDIA B200", "NVIDIA B200")).id == "generic"


def test_a_named_profile_is_taken_as_it_is() -> None:
    assert spec(profile="h100").profile.id == "h100"
    assert spec(profile="generic").profile.id == "generic"


def test_different_gpus_are_an_error_that_names_them() -> None:
    with pytest.raises(PolicyError) as caught:
        select_profile(facts("NVIDIA H200", "NVIDIA H100 80GB HBM3"))
    (problem,) = caught.value.problems
    assert "NVIDIA H100 80GB HBM3, NVIDIA H200" in problem.message
    assert "generic" in problem.hint


def test_different_boards_of_one_generation_are_different_too() -> None:
    with pytest.raises(PolicyError, match="different GPUs"):
        select_profile(facts("NVIDIA H100 PCIe", "NVIDIA H100 80GB HBM3"))


def test_different_gpus_under_a_named_profile() -> None:
    settings = settings_from_variables({"nodeprep_profile": "generic"}, source="x", known_checks=())
    mixed = facts("NVIDIA H200", "Tesla T4")
    assert resolve("node07", settings, mixed, today=TODAY).profile.id == "generic"


def test_without_names_it_is_generic() -> None:
    assert select_profile(without_nvml()).id == "generic"
    assert select_profile(facts(HUNG, HUNG)).id == "generic"
    assert select_profile(facts("NVIDIA H200", HUNG)).id == "h200"


def test_the_link_is_the_profiles_unless_the_policy_says_otherwise() -> None:
    plain = spec()
    assert plain.pcie_gen == plain.profile.pcie_gen
    assert plain.pcie_width_lanes == plain.profile.pcie_width_lanes
    pinned = spec({"pcie_link": {"gen": 4, "width_lanes": 8}})
    assert pinned.pcie_gen is not None
    assert pinned.pcie_width_lanes is not None
    assert (pinned.pcie_gen.value, pinned.pcie_gen.source) == (4, "policy: pcie_link.gen")
    assert (pinned.pcie_width_lanes.value, pinned.pcie_width_lanes.unit) == (8, "lanes")


def figures(node: NodeSpec) -> tuple[float | None, ...]:
    profile = node.profile
    limits = profile.replays_per_lane_minute, profile.copy_h2d_gbps, profile.copy_d2h_gbps
    return tuple(limit.value if limit else None for limit in limits)


def test_floors_follow_a_pinned_link() -> None:
    assert figures(spec()) == (1.92, 52, 52)
    assert figures(spec({"pcie_link": {"gen": 5}})) == (1.92, 52, 52)
    assert figures(spec({"pcie_link": {"gen": 4}})) == (0.96, 23, 23)
    assert figures(spec({"pcie_link": {"gen": 4, "width_lanes": 8}})) == (0.96, 11.5, 11.5)
    assert figures(spec({"pcie_link": {"width_lanes": 8}})) == (1.92, 26, 26)
    assert figures(spec({"pcie_link": {"gen": 3}})) == (0.48, None, None)
    assert figures(spec({"pcie_link": {"gen": 1}})) == (None, None, None)


def test_a_scaled_floor_says_so() -> None:
    floor = spec({"pcie_link": {"gen": 4, "width_lanes": 8}}).profile.copy_h2d_gbps
    assert floor is not None
    assert floor.source.endswith("8 of 16 lanes")


def test_generic_gets_replays_from_a_pinned_link_and_no_floors() -> None:
    assert figures(spec(profile="generic")) == (None, None, None)
    assert figures(spec({"pcie_link": {"gen": 4}}, profile="generic")) == (0.96, None, None)


@pytest.mark.parametrize(
    ("limit", "known"),
    [(None, True), ("93%", True), ("90%", True), ("89%", False), ("650W", True), ("629W", False)],
)
def test_the_throughput_floors_hold_near_the_default_limit_only(limit: str | None, known: bool) -> None:
    policy = {"gpu": {"power_limit": limit}} if limit else {}
    profile = spec(policy).profile
    assert (profile.probe_tflops is not None) == known
    assert (profile.ceiling_tflops is not None) == known


def test_a_node_of_another_board_is_not_held_against_the_figures_of_sxm() -> None:
    assert select_profile(facts("NVIDIA H200 NVL", "NVIDIA H200 NVL")).ceiling_tflops is None
    assert select_profile(facts("NVIDIA H100 PCIe", "NVIDIA H100 PCIe")).ceiling_tflops is None


def test_the_digest_is_of_the_policy() -> None:
    # Of the site's policy, which pcie_ports=native is none of where it comes with pcie_aspm=off.
    assert spec().policy_digest == digest(settings_from_variables({}, source="x", known_checks=()).policy)
    assert spec().policy_digest != spec({"gpu": {"persistence": False}}).policy_digest


def test_waivers_by_host_and_day() -> None:
    common = {"owner": "ops", "why": "x"}
    waivers = [
        {"check": "a", "until": "2026-11-30", **common},
        {"check": "a", "until": "2026-11-29", "host": "node0?", **common},
        {"check": "b", "until": "2027-01-01", "host": "node07", **common},
        {"check": "b", "until": "2027-01-01", "host": "node08", **common},
    ]
    node = spec({"waivers": waivers})
    assert [(waiver.check, waiver.host) for waiver in node.waivers] == [("a", "*"), ("b", "node07")]
    assert [waiver.host for waiver in node.expired_waivers] == ["node0?"]
    other = spec({"waivers": waivers}, host="node08")
    assert [(waiver.check, waiver.host) for waiver in other.waivers] == [("a", "*"), ("b", "node08")]


@pytest.mark.parametrize(
    ("firmware_first", "kernel_args", "present"),
    [
        (False, {}, ("pcie_aspm=off", "iommu=off", "pcie_ports=native")),
        (True, {}, ("pcie_aspm=off", "iommu=off")),
        ("unreadable", {}, ("pcie_aspm=off", "iommu=off")),
        (False, {"aer_ownership": "leave"}, ("pcie_aspm=off", "iommu=off")),
        (False, {"present": ["pcie_ports=compat", "pcie_aspm=off"]}, ("pcie_ports=compat", "pcie_aspm=off")),
        (False, {"present": ["iommu=off"]}, ("iommu=off",)),
    ],
)
def test_aer_is_taken_where_pcie_aspm_off_would_leave_it_to_nobody(
    firmware_first: Any, kernel_args: dict[str, Any], present: tuple[str, ...]
) -> None:
    document = json.loads(FACTS.read_text())
    reading = {"state": "error", "detail": "no HEST"} if firmware_first == "unreadable" else None
    document["aer_ownership"]["firmware_first"] = reading or {"state": "ok", "value": firmware_first}
    node = decode(json.dumps(document), NodeFacts, source="facts")
    variables = {"nodeprep_policy": {"kernel_args": kernel_args}}
    settings = settings_from_variables(variables, source="x", known_checks=())
    assert resolve("node07", settings, node, today=TODAY).policy.kernel_args.present == present
