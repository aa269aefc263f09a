"""The policy's BIOS knobs are those that can be resolved, with the values that they have."""

from __future__ import annotations

from pathlib import Path

import pytest

from nodeprep.bmc.bios import from_policy, knobs
from nodeprep.errors import PolicyError
from nodeprep.knobs.bios import KNOB
from nodeprep.model.policy import BIOS_KNOBS, Policy
from nodeprep.profiles import settings_from_variables

PAGE = Path(__file__).parents[2] / "docs" / "knobs" / "bios.md"


def policy(**bios: object) -> Policy:
    variables = {"nodeprep_policy": {"bios": bios}}
    return settings_from_variables(variables, source="test", known_checks=()).policy


def test_one_list_of_knobs() -> None:
    assert set(BIOS_KNOBS) == set(knobs())
    page = PAGE.read_text()
    assert [name for name in BIOS_KNOBS if f"| `{name}` |" not in page] == []
    assert KNOB.id == "bios"


@pytest.mark.parametrize("name", BIOS_KNOBS)
def test_every_value_of_a_knob_can_be_asked_for(name: str) -> None:
    for value in knobs()[name].values:
        asked = policy(**{name: int(value) if value.isdecimal() else value}).bios_wanted()
        assert asked == {name: value}
        assert from_policy(asked)[name].value == value


@pytest.mark.parametrize("name", BIOS_KNOBS)
@pytest.mark.parametrize("value", ["on", True, 7, "Gen4"])
def test_no_other_value_can(name: str, value: object) -> None:
    with pytest.raises(PolicyError, match=f"bios.{name}"):
        policy(**{name: value})


def test_what_is_left_alone_is_not_asked() -> None:
    assert policy().bios_wanted() == {}
    assert policy(unsupported="accept").bios_wanted() == {}


@pytest.mark.parametrize(("method", "asked"), [("auto", True), ("bios", True), ("host", False)])
def test_a_link_that_the_policy_leaves_to_the_bios_is_asked_about(method: str, asked: bool) -> None:
    variables = {"nodeprep_policy": {"pcie_link": {"gen": 4, "method": method}}}
    found = settings_from_variables(variables, source="test", known_checks=()).policy.bios_wanted()
    assert found == ({"pcie_link_gen": "4"} if asked else {})
