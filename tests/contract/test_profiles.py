"""Every profile holds together, has its page, and gives every figure a source."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from nodeprep.model.spec import Limit, Profile
from nodeprep.profiles.catalog import link_figures, load_page, load_profile, profile_ids
from nodeprep.profiles.page import main, render

PAGES = Path(__file__).parents[2] / "docs" / "profiles"


@pytest.mark.parametrize("profile_id", profile_ids())
def test_every_figure_has_a_value_with_a_source_or_a_reason(profile_id: str) -> None:
    page = load_page(profile_id)
    for field in fields(Profile):
        value = getattr(page.profile, field.name)
        if isinstance(value, Limit):
            assert len(value.source) > 10, field.name
            assert value.unit
            assert value.value > 0
        elif value is None:
            assert len(page.unknown[field.name]) > 10, field.name


@pytest.mark.parametrize("profile_id", profile_ids())
def test_fractions_are_fractions(profile_id: str) -> None:
    profile = load_profile(profile_id)
    for limit in (
        profile.power_of_limit_fraction,
        profile.probe_of_ceiling_fraction,
        profile.spread_fraction,
    ):
        assert limit is None or 0 < limit.value < 1


@pytest.mark.parametrize("profile_id", profile_ids())
def test_the_page_is_up_to_date(profile_id: str) -> None:
    page = (PAGES / f"{profile_id}.md").read_text()
    assert page == render(load_page(profile_id)), "run: python -m nodeprep.profiles.page docs/profiles"


def test_all_pages_are_written(tmp_path: Path) -> None:
    main(tmp_path)
    assert {page.stem for page in tmp_path.iterdir()} == set(profile_ids())


def test_no_page_of_a_profile_that_does_not_exist() -> None:
    assert {page.stem for page in PAGES.glob("*.md")} - {"README"} == set(profile_ids())


@pytest.mark.parametrize("gen", range(1, 7))
def test_every_generation_a_policy_may_name_has_figures(gen: int) -> None:
    figures = link_figures(gen)
    for limit in (figures.replays_per_lane_minute, figures.copy_x16_gbps):
        assert limit is None or (limit.value > 0 and limit.source)
