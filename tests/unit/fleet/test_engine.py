"""Whole phases through a real ansible-playbook, over this machine under several names."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nodeprep.errors import Interrupted, NodeprepError
from nodeprep.fleet import DiskError, Fleet, FleetEvent, FleetInterrupted, Target, content, engine, play

Write = Callable[[dict[str, dict[str, Any]]], Path]
Make = Callable[..., Fleet]

# Plays that make a fleet's life hard; they stand where the collection's playbooks stand.
SLEEPS = """
- hosts: all
  gather_facts: false
  tasks:
    - name: Sleep
      ansible.builtin.command: {argv: [sleep, "%s"]}
"""
SKIPS_N2 = """
- hosts: "all:!n2"
  gather_facts: false
  tasks:
    - nodeprep.rack.phase: {name: x}
"""
ASKS = """
- hosts: all
  gather_facts: false
  tasks:
    - name: See what is on the disk while the play runs
      ansible.builtin.shell: "grep -rl {{ word }} {{ folder }} || true"
      register: found
    - nodeprep.rack.phase: {name: x, error: "{{ found.stdout }}"}
"""
TALKS = """
- hosts: all
  gather_facts: false
  tasks:
    - nodeprep.rack.phase: {name: other, error: "{{ 'x' * 1000000 }}"}
      loop: "{{ range(10) | list }}"
    - nodeprep.rack.phase:
        name: x
        error: "{{ settings }} {{ lookup('env', 'NODEPREP_BMC_PASSWORD') }}"
        hint: "{{ 'x' * 1000000 }}"
"""


@pytest.fixture
def playbook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    def write(text: str) -> str:
        (tmp_path / "play.yml").write_text(text)
        monkeypatch.setattr(engine, "playbook_path", lambda _name: tmp_path / "play.yml")
        return "play.yml"

    return write


def left_behind(run_dir: Path) -> list[str]:
    return sorted(str(path.relative_to(run_dir)) for path in run_dir.rglob("*"))


def test_inspect_of_this_machine_needs_no_inventory(
    make_fleet: Make, run_dir: Path, events: list[FleetEvent]
) -> None:
    fleet = make_fleet()
    outcomes = fleet.run("inspect.yml", fleet.targets(None), phase="before")
    assert outcomes["localhost"].state == "done"
    assert outcomes["localhost"].data["facts"]["schema"] == "nodeprep.facts/1"
    assert [event.kind for event in events] == ["task", "task", "done"]
    # ansible-runner's own files hold whole results and the environment; only the short journal stays.
    assert left_behind(run_dir) == ["events.jsonl"]
    lines = [json.loads(line) for line in (run_dir / "events.jsonl").read_text().splitlines()]
    assert [(line["phase"], line["host"], line["kind"]) for line in lines][-1] == (
        "before",
        "localhost",
        "done",
    )


@pytest.mark.skipif(shutil.which("ssh") is None, reason="no ssh client")
def test_each_host_that_was_asked_for_has_its_own_end(make_fleet: Make, write_inventory: Write) -> None:
    path = write_inventory(
        {
            "good": {},
            "closed_port": {"ansible_connection": "ssh", "ansible_host": "127.0.0.1", "ansible_port": 1},
            "no_python": {"ansible_python_interpreter": "/nonexistent/python3"},
        }
    )
    fleet = make_fleet(path)
    targets = [*fleet.targets(None), Target("not_in_the_inventory", {})]
    outcomes = fleet.run("inspect.yml", targets, phase="inspect")
    assert {host: outcome.state for host, outcome in outcomes.items()} == {
        "good": "done",
        "closed_port": "unreachable",
        "no_python": "failed",
        "not_in_the_inventory": "missing",
    }
    assert outcomes["good"].data["facts"]["simulated"] is True
    assert "127.0.0.1" in outcomes["closed_port"].error
    assert "/nonexistent/python3" in outcomes["no_python"].error
    assert all(outcomes[host].hint for host in ("closed_port", "not_in_the_inventory"))


def test_a_host_the_play_leaves_out_is_missing(
    make_fleet: Make, write_inventory: Write, playbook: Callable[[str], str]
) -> None:
    fleet = make_fleet(write_inventory({"n1": {}, "n2": {}}))
    outcomes = fleet.run(playbook(SKIPS_N2), fleet.targets(None), phase="x")
    assert {host: outcome.state for host, outcome in outcomes.items()} == {"n1": "done", "n2": "missing"}


def test_nothing_to_do(make_fleet: Make) -> None:
    assert make_fleet().run("inspect.yml", [], phase="inspect") == {}


def test_a_play_that_cannot_begin_is_an_error_in_ansibles_words(
    make_fleet: Make, write_inventory: Write, playbook: Callable[[str], str], run_dir: Path
) -> None:
    fleet = make_fleet(write_inventory({"n1": {}}))
    with pytest.raises(NodeprepError, match="no_such_key") as caught:
        fleet.run(playbook("- hosts: all\n  no_such_key: 1\n"), fleet.targets(None), phase="x")
    assert caught.value.hint
    assert left_behind(run_dir) == ["events.jsonl"]
    with pytest.raises(NodeprepError, match="could not begin"):
        fleet.run("inspect.yml", [Target("ghost", {})], phase="x")


def test_big_results_arrive_whole_host_variables_win_and_secrets_stay_here(
    make_fleet: Make,
    write_inventory: Write,
    playbook: Callable[[str], str],
    monkeypatch: pytest.MonkeyPatch,
    run_dir: Path,
) -> None:
    monkeypatch.setenv("NODEPREP_BMC_PASSWORD", "hunter2")
    fleet = make_fleet(write_inventory({"n1": {"settings": "inventory"}, "n2": {"settings": "inventory"}}))
    sizes: list[int] = []
    take = play.Play._take

    def spy(self: play.Play, event: dict[str, Any]) -> bool:
        sizes.append(len(list(run_dir.rglob("job_events/*[0-9a-f].json"))))
        kept = take(self, event)
        assert kept is True
        return kept

    monkeypatch.setattr(play.Play, "_take", spy)
    outcomes = fleet.run(
        playbook(TALKS), fleet.targets(None), phase="x", host_vars={"n2": {"settings": "from the run"}}
    )
    assert outcomes["n1"].error.strip() == "inventory"
    assert outcomes["n2"].error.strip() == "from the run"
    # ansible-runner cuts results at 700 kB unless told otherwise.
    assert len(outcomes["n2"].hint) == 1000000
    assert len(sizes) > 20
    # One event file at a time and the few that are being written, not one for each of the 20 results.
    assert max(sizes) <= 5


def test_a_password_is_never_on_the_disk_not_even_while_the_play_runs(
    make_fleet: Make,
    write_inventory: Write,
    playbook: Callable[[str], str],
    run_dir: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SOME_TOKEN", "correct-horse")
    # Ansible only hands the password on when it becomes somebody; asking for it is enough here.
    fleet = make_fleet(write_inventory({"n1": {}}), passwords={"^BECOME password.*:\\s*?$": "correct-horse"})
    outcomes = fleet.run(
        playbook(ASKS),
        fleet.targets(None),
        phase="x",
        extra_vars={"word": "correct-hors[e]", "folder": str(run_dir)},
    )
    assert outcomes["n1"].state == "done"
    assert outcomes["n1"].error == ""
    assert left_behind(run_dir) == ["events.jsonl"]


def alive(text: str) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if text in path.read_bytes().replace(b"\0", b" ").decode(errors="replace"):
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


@pytest.mark.parametrize("how", ["cancel", "signal"])
def test_interrupting_returns_at_once_and_leaves_no_process(
    make_fleet: Make, write_inventory: Write, playbook: Callable[[str], str], run_dir: Path, how: str
) -> None:
    seconds = f"77.{os.getpid()}"
    started: list[float] = []

    def on_event(event: FleetEvent) -> None:
        if not started:
            started.append(time.monotonic())
            if how == "signal":
                raise Interrupted("as a SIGTERM handler does")
            threading.Timer(0.5, fleet.cancel).start()

    fleet = make_fleet(write_inventory({"n1": {}, "n2": {}}), on_event=on_event)
    with pytest.raises(FleetInterrupted, match="interrupted during x") as caught:
        fleet.run(playbook(SLEEPS % seconds), fleet.targets(None), phase="x")
    assert time.monotonic() - started[0] < 20
    assert {host: outcome.state for host, outcome in caught.value.outcomes.items()} == {
        "n1": "unknown",
        "n2": "unknown",
    }
    assert "run folder" in caught.value.hint
    deadline = time.monotonic() + 20
    while alive(f"sleep {seconds}") and time.monotonic() < deadline:
        time.sleep(0.05)
    assert alive(f"sleep {seconds}") == []
    assert left_behind(run_dir) == ["events.jsonl"]


def test_an_error_of_the_listener_ends_the_play(make_fleet: Make, run_dir: Path) -> None:
    def broken(_event: FleetEvent) -> None:
        raise ValueError("bug in the progress view")

    fleet = make_fleet(on_event=broken)
    with pytest.raises(ValueError, match="bug in the progress view"):
        fleet.run("inspect.yml", fleet.targets(None), phase="x")
    assert left_behind(run_dir) == ["events.jsonl"]


def test_a_run_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    fleet = Fleet(run_dir=tmp_path / "file", inventory=None)
    with pytest.raises(DiskError, match="cannot write") as caught:
        fleet.run("inspect.yml", fleet.targets(None), phase="x")
    assert "-o" in caught.value.hint


def test_a_full_disk_during_the_play(make_fleet: Make, run_dir: Path) -> None:
    (run_dir / "events.jsonl").symlink_to("/dev/full")
    fleet = make_fleet()
    with pytest.raises(DiskError, match="the disk is full") as caught:
        fleet.run("inspect.yml", fleet.targets(None), phase="x")
    assert "free space" in caught.value.hint
    assert left_behind(run_dir) == ["events.jsonl"]


@pytest.mark.parametrize(
    ("code", "words"),
    [(errno.ENOSPC, "disk is full"), (errno.EDQUOT, "disk is full"), (errno.EROFS, "Read-only")],
)
def test_a_disk_that_fills_under_ansible_runner(
    make_fleet: Make, monkeypatch: pytest.MonkeyPatch, code: int, words: str
) -> None:
    def full(_self: play.Play) -> play.PlayEnd:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(play.Play, "_run", full)
    with pytest.raises(DiskError, match=words) as caught:
        make_fleet().run("inspect.yml", [Target("localhost", {})], phase="x")
    assert "-o" in caught.value.hint


def test_another_error_of_ansible_runner_is_a_bug(make_fleet: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_self: play.Play) -> play.PlayEnd:
        raise OSError(errno.EAGAIN, "no more processes")

    monkeypatch.setattr(play.Play, "_run", broken)
    with pytest.raises(NodeprepError, match="ansible-runner broke") as caught:
        make_fleet().run("inspect.yml", [Target("localhost", {})], phase="x")
    assert not isinstance(caught.value, DiskError)


def test_a_process_without_standard_output(run_dir: Path) -> None:
    code = """
import sys
from pathlib import Path
from nodeprep.fleet import Fleet
fleet = Fleet(run_dir=Path(sys.argv[1]), inventory=None)
sys.exit(fleet.run("inspect.yml", fleet.targets(None), phase="x")["localhost"].state)
"""
    done = subprocess.run(
        ["/bin/sh", "-c", 'exec "$@" >&-', "sh", sys.executable, "-c", code, str(run_dir)],
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert done.stderr == "done\n"


def test_no_ansible_and_no_playbook(
    make_fleet: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fleet = make_fleet()
    with pytest.raises(NodeprepError, match=r"the playbook absent\.yml is missing") as caught:
        fleet.run("absent.yml", fleet.targets(None), phase="x")
    assert "reinstall" in caught.value.hint
    monkeypatch.setattr(content.sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NodeprepError, match="ansible-playbook was found neither"):
        fleet.run("inspect.yml", fleet.targets(None), phase="x")


def test_the_environment_of_ansible(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANSIBLE_COLLECTIONS_PATH", raising=False)
    environment = play._environment()
    assert environment["ANSIBLE_HOST_KEY_CHECKING"] == "True"
    assert environment["ANSIBLE_PIPELINING"] == "True"
    assert (
        Path(environment["ANSIBLE_COLLECTIONS_PATH"].split(":")[0]) / "ansible_collections/nodeprep/rack"
    ).is_dir()
    assert "/usr/share/ansible/collections" in environment["ANSIBLE_COLLECTIONS_PATH"]
    assert "ServerAliveInterval" in environment["ANSIBLE_SSH_ARGS"]
    monkeypatch.setenv("ANSIBLE_COLLECTIONS_PATH", "/srv/collections")
    assert play._environment()["ANSIBLE_COLLECTIONS_PATH"].endswith(":/srv/collections")
