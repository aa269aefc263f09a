"""A run folder belongs to one run."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from nodeprep.errors import PolicyError, UsageError
from nodeprep.workflows.home import Home
from nodeprep.workflows.session import Request, Session


def test_a_folder_with_an_earlier_run_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text("{}")
    (tmp_path / "probe" / "n1").mkdir(parents=True)
    (tmp_path / "probe" / "n1" / "result.json").write_text("old")
    with (
        pytest.raises(UsageError, match="holds an earlier run"),
        Session(Request(output=tmp_path), "certify", home=Home(tmp_path / "home")),
    ):
        pytest.fail("entered")
    assert (tmp_path / "run.json").read_text() == "{}"


def test_a_run_begins_with_every_host_unknown_in_a_private_folder(tmp_path: Path) -> None:
    with Session(Request(output=tmp_path / "run"), "inspect", home=Home(tmp_path / "home")) as session:
        (record,) = session.run_document().hosts
        assert (record.host, record.state) == ("localhost", "unknown")
        assert stat.S_IMODE(session.run_dir.stat().st_mode) == 0o700


def test_a_folder_that_cannot_be_written_is_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(UsageError, match="cannot write"),
        Session(Request(output=tmp_path / "file" / "run"), "inspect", home=Home(tmp_path / "home")),
    ):
        pytest.fail("entered")


def test_the_problems_of_all_hosts_are_told_at_once(tmp_path: Path) -> None:
    inventory = tmp_path / "hosts.yml"
    inventory.write_text(
        """all:
  hosts:
    n1: {nodeprep_policy: {gpu: {cout: 8}}}
    n2: {nodeprep_policy: {gpu: {cout: 8}, bois: {}}}
  vars: {ansible_connection: local}
"""
    )
    with (
        pytest.raises(PolicyError) as caught,
        Session(Request(inventory=inventory, output=tmp_path / "run"), "plan", home=Home(tmp_path / "home")),
    ):
        pytest.fail("entered")
    told = caught.value.message
    assert "nodeprep_policy.gpu.cout: unknown key [n1, n2]" in told
    assert "nodeprep_policy.bois: unknown key [n2]" in told


def test_what_is_refused_before_it_begins_leaves_no_folder(tmp_path: Path) -> None:
    inventory = tmp_path / "hosts.yml"
    inventory.write_text("all: {hosts: {n1: {nodeprep_policy: {bois: {}}, ansible_connection: local}}}\n")
    home = Home(tmp_path / "home")
    for output in (None, tmp_path / "runs" / "mine"):
        with (
            pytest.raises(PolicyError),
            Session(Request(inventory=inventory, output=output), "plan", home=home),
        ):
            pytest.fail("entered")
    assert [path.name for path in tmp_path.iterdir()] == ["hosts.yml"]


def test_a_folder_that_was_there_stays(tmp_path: Path) -> None:
    inventory = tmp_path / "hosts.yml"
    inventory.write_text("all: {hosts: {n1: {nodeprep_policy: {bois: {}}, ansible_connection: local}}}\n")
    (tmp_path / "mine").mkdir()
    request = Request(inventory=inventory, output=tmp_path / "mine")
    with pytest.raises(PolicyError), Session(request, "plan", home=Home(tmp_path / "home")):
        pytest.fail("entered")
    assert (tmp_path / "mine").is_dir()
