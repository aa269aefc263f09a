from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nodeprep.errors import NodeprepError, UsageError
from nodeprep.fleet import Fleet, Target, content, inventory

Write = Callable[[dict[str, dict[str, Any]]], Path]
Make = Callable[..., Fleet]


def test_no_inventory_is_this_machine(make_fleet: Make) -> None:
    assert make_fleet().targets(None) == (Target("localhost", {}, local=True),)
    assert make_fleet().targets("localhost") == make_fleet().targets("all")
    with pytest.raises(UsageError, match="without an inventory there is only localhost"):
        make_fleet().targets("node01")


def test_hosts_with_their_own_variables_and_no_secrets(make_fleet: Make, write_inventory: Write) -> None:
    path = write_inventory(
        {
            "node01": {
                "nodeprep_policy": {"gpu": {"power_limit": "93%"}},
                "ansible_become_password": "s3cret",
            },
            "node02": {},
        }
    )
    first, second = make_fleet(path).targets(None)
    assert (first.host, second.host) == ("node01", "node02")
    assert first.variables["nodeprep_policy"] == {"gpu": {"power_limit": "93%"}}
    assert "s3cret" not in repr(first)


def test_which_hosts_are_worked_on_without_ssh(make_fleet: Make, write_inventory: Write) -> None:
    fleet = make_fleet(write_inventory({"here": {}, "there": {"ansible_connection": "ssh"}}))
    assert [(target.host, target.local) for target in fleet.targets(None)] == [
        ("here", True),
        ("there", False),
    ]


def test_patterns_are_ansibles(make_fleet: Make, write_inventory: Write) -> None:
    fleet = make_fleet(write_inventory({"node01": {}, "node02": {}, "other": {}}))
    assert [target.host for target in fleet.targets("rack:!other")] == ["node01", "node02"]
    assert [target.host for target in fleet.targets("node0*")] == ["node01", "node02"]
    assert [target.host for target in fleet.targets("rack:&other")] == ["other"]


@pytest.mark.parametrize("pattern", ["node10", "node01,node10", "node10:node02"])
def test_a_name_that_matches_nothing_is_an_error_with_close_names(
    make_fleet: Make, write_inventory: Write, pattern: str
) -> None:
    fleet = make_fleet(write_inventory({"node01": {}, "node02": {}}))
    with pytest.raises(UsageError, match="matches 'node10'") as caught:
        fleet.targets(pattern)
    assert "did you mean" in caught.value.hint
    assert "node01" in caught.value.hint


def test_a_pattern_that_leaves_no_host(make_fleet: Make, write_inventory: Write) -> None:
    with pytest.raises(UsageError, match="matches 'rack:!rack'"):
        make_fleet(write_inventory({"node01": {}})).targets("rack:!rack")


def test_far_off_names_get_the_list(make_fleet: Make, write_inventory: Write) -> None:
    with pytest.raises(UsageError) as caught:
        make_fleet(write_inventory({f"node{n:02}": {} for n in range(12)})).targets("zzz")
    assert caught.value.hint.startswith("hosts and groups: node00, ")
    assert caught.value.hint.endswith(" and 3 more")


def test_broken_missing_and_empty_inventories(make_fleet: Make, tmp_path: Path) -> None:
    broken = tmp_path / "broken.yml"
    broken.write_text("all: [\n")
    with pytest.raises(UsageError, match="YAML parsing failed") as caught:
        make_fleet(broken).targets(None)
    assert str(broken) in caught.value.message
    with pytest.raises(UsageError, match="no inventory at"):
        make_fleet(tmp_path / "absent.yml").targets(None)
    empty = tmp_path / "empty.yml"
    empty.write_text("all:\n  hosts: {}\n")
    with pytest.raises(UsageError, match="has no hosts"):
        make_fleet(empty).targets(None)


@pytest.mark.parametrize("value", ["{{ 90 + 3 }}%", {"__ansible_vault": "x"}, ["a", "{% if x %}"]])
def test_a_policy_that_only_a_play_could_resolve_is_refused(value: object) -> None:
    with pytest.raises(UsageError, match=r"n1: nodeprep_policy\.gpu.* is a template or a vaulted value"):
        inventory._own("n1", {"nodeprep_policy": {"gpu": value}})
    assert inventory._own("n1", {"nodeprep_probe_runtime_index_url": value, "nodeprep_root": "/x"}) == {
        "nodeprep_root": "/x"
    }


def test_an_inventory_that_does_not_answer(
    make_fleet: Make, write_inventory: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    def late(*_arguments: object, **_options: object) -> None:
        raise subprocess.TimeoutExpired("ansible-inventory", 120)

    path = write_inventory({"n1": {}})
    monkeypatch.setattr(subprocess, "run", late)
    with pytest.raises(UsageError, match="gave no answer within 120 s"):
        make_fleet(path).targets(None)


def test_no_ansible(
    make_fleet: Make, write_inventory: Write, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(content.sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NodeprepError, match="ansible-inventory was found neither") as caught:
        make_fleet(write_inventory({"n1": {}})).targets(None)
    assert "pip install ansible-core" in caught.value.hint
