"""Profiles are read as strictly as policies, and a figure that is not known has a reason."""

from __future__ import annotations

import pytest
import yaml

from nodeprep.errors import PolicyError, UsageError
from nodeprep.profiles.catalog import link_figures, load_page, load_profile, match, parse_page, profile_ids

# Product names as NVML gives them.
NAMES = {
    "NVIDIA A100-SXM4-40GB": "a100",
    "NVIDIA A100-SXM4-80GB": "a100",
    "NVIDIA A100-PCIE-40GB": "a100_pcie",
    "NVIDIA A100 80GB PCIe": "a100_pcie",
    "NVIDIA A100-SXM-64GB": "a100_pcie",
    "A100-PCIE-40GB": "a100_pcie",
    "A100-SXM4-40GB": "a100",
    "NVIDIA H100 80GB HBM3": "h100",
    "NVIDIA H100 PCIe": "h100_pcie",
    "NVIDIA H100 NVL": "h100_pcie",
    "NVIDIA H100 96GB HBM3": "h100",
    "NVIDIA H100 64GB HBM2": "h100_pcie",
    "NVIDIA H100": "h100_pcie",
    "NVIDIA H200": "h200",
    "NVIDIA H200 NVL": "h200_nvl",
    "NVIDIA GH200 480GB": "generic",
    "NVIDIA H20": "generic",
    "NVIDIA H800": "generic",
    "NVIDIA A10": "generic",
    "NVIDIA B200": "generic",
    "NVIDIA L40S": "generic",
    "Tesla T4": "generic",
}


@pytest.mark.parametrize(("name", "profile"), NAMES.items())
def test_by_name(name: str, profile: str) -> None:
    assert match(name).id == profile


def test_the_profiles_there_are() -> None:
    assert profile_ids() == ("a100", "a100_pcie", "generic", "h100", "h100_pcie", "h200", "h200_nvl")


def test_floors_of_sxm_boards_are_for_sxm_boards_only() -> None:
    floors = {name: load_profile(name).ceiling_tflops for name in profile_ids()}
    known = {name: floor.value for name, floor in floors.items() if floor is not None}
    assert known == {"a100": 217, "h100": 584, "h200": 590}
    for name in ("a100_pcie", "h100_pcie", "h200_nvl", "generic"):
        profile = load_profile(name)
        assert (profile.probe_tflops, profile.power_of_limit_fraction) == (None, None), name


def test_what_a_healthy_h200_did_is_above_its_floors() -> None:
    # Five quick runs on one H200 SXM at 700 W; the least of each.
    profile = load_profile("h200")
    for limit, measured in (
        (profile.probe_tflops, 564),
        (profile.ceiling_tflops, 647),
        (profile.power_of_limit_fraction, 0.984),
        (profile.probe_of_ceiling_fraction, 564 / 659),
    ):
        assert limit is not None
        assert limit.value < measured


def test_generic_knows_no_absolute_floor() -> None:
    profile = load_profile("generic")
    assert profile.probe_tflops is None
    assert profile.ceiling_tflops is None
    assert profile.copy_h2d_gbps is None
    assert profile.copy_d2h_gbps is None
    assert profile.pcie_gen is None
    assert profile.power_of_limit_fraction is None


def test_there_is_no_such_profile() -> None:
    with pytest.raises(UsageError, match="no profile 'h300'") as caught:
        load_profile("h300")
    assert caught.value.hint == f"profiles: {', '.join(profile_ids())}"


def text(**changes: object) -> str:
    page = load_page("a100")
    document = {name: getattr(page.profile, name) for name in type(page.profile).__dataclass_fields__}
    plain = {
        name: {"value": value.value, "unit": value.unit, "source": value.source}
        if hasattr(value, "source")
        else list(value)
        if isinstance(value, tuple)
        else value
        for name, value in document.items()
    }
    return yaml.safe_dump({**plain, "unknown": dict(page.unknown), **changes})


def test_a_profile_survives_being_written_and_read() -> None:
    assert parse_page(text(), profile_id="a100") == load_page("a100")


@pytest.mark.parametrize(
    ("changes", "path", "says"),
    [
        ({"unknown": {"probe_tflops": "not measured"}}, "power_of_limit_fraction", "null without a reason"),
        ({"pcie_gen": None}, "pcie_gen", "null without a reason"),
        ({"unknown": []}, "unknown", "expected a mapping"),
        ({"id": "b100"}, "id", "is 'b100' in the file a100.yaml"),
        ({"match_names": []}, "match_names", "is empty"),
        ({"pcie_gen": 4}, "pcie_gen", "expected a mapping"),
        ({"pcie_gen": {"value": 4, "unit": "generation"}}, "pcie_gen.source", "missing"),
        ({"pcie_gen": {"value": 4, "unit": "generation", "source": " "}}, "pcie_gen.source", "is empty"),
        ({"pcie_gen": {"value": "4", "unit": "generation", "source": "x"}}, "pcie_gen.value", "Expected"),
        ({"tflops": 1}, "tflops", "unknown key"),
        ({"temperature_margin_c": None}, "temperature_margin_c", "expected a mapping"),
    ],
)
def test_a_profile_that_does_not_hold(changes: dict[str, object], path: str, says: str) -> None:
    with pytest.raises(PolicyError) as caught:
        parse_page(text(**changes), profile_id="a100")
    found = {problem.path: problem for problem in caught.value.problems}
    assert says in found[path].message
    assert all(problem.hint for problem in found.values())


def test_a_reason_for_a_figure_that_is_known() -> None:
    reasons = {**load_page("a100").unknown, "pcie_gen": "x", "nothing": "y"}
    with pytest.raises(PolicyError) as caught:
        parse_page(text(unknown=reasons), profile_id="a100")
    assert [problem.path for problem in caught.value.problems] == ["unknown.pcie_gen", "unknown.nothing"]


def test_a_profile_that_is_no_mapping() -> None:
    with pytest.raises(PolicyError, match="expected a mapping"):
        parse_page("[]", profile_id="a100")


def test_replays_double_with_each_generation() -> None:
    rates = [link_figures(gen).replays_per_lane_minute for gen in range(1, 7)]
    assert [rate.value if rate else None for rate in rates] == [None, None, 0.48, 0.96, 1.92, 3.84]


def test_profiles_agree_with_the_figures_of_their_generation() -> None:
    for profile_id in profile_ids():
        profile = load_profile(profile_id)
        if profile.pcie_gen is not None:
            figures = link_figures(int(profile.pcie_gen.value))
            assert profile.replays_per_lane_minute == figures.replays_per_lane_minute
            assert profile.copy_h2d_gbps is not None
            assert figures.copy_x16_gbps is not None
            assert profile.copy_h2d_gbps.value == figures.copy_x16_gbps.value
