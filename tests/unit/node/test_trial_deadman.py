"""The unit that reboots a trial boot which nobody confirms."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from trial_node import Node

from nodeprep.node import power_unit, trial_deadman


@pytest.fixture
def unit(tmp_path: Path) -> str:
    trial_deadman.install(str(tmp_path), 900)
    return (tmp_path / trial_deadman.UNIT_FILE.lstrip("/")).read_text()


def script(unit: str) -> str:
    [found] = re.findall(r"ExecStart=/bin/sh -c '([^']*)'", unit)
    return str(found).replace("\\\n", " ")


def test_it_starts_on_trial_boots_only_in_every_mode_and_survives_isolation(unit: str) -> None:
    lines = unit.splitlines()
    assert "ConditionKernelCommandLine=nodeprep.trial" in lines
    assert "DefaultDependencies=no" in lines
    assert "IgnoreOnIsolate=yes" in lines
    assert "WantedBy=sysinit.target emergency.target rescue.target" in lines


def test_every_target_wants_it_by_a_link(tmp_path: Path, unit: str) -> None:
    for target in ("sysinit", "emergency", "rescue"):
        link = tmp_path / f"etc/systemd/system/{target}.target.wants/{trial_deadman.UNIT}"
        assert str(link.readlink()) == f"../{trial_deadman.UNIT}"
        assert link.read_text() == unit


def test_it_waits_and_then_takes_the_kernels_own_door(unit: str) -> None:
    steps = [step.strip() for step in script(unit).split(";")]
    assert steps[0] == "sleep 900 || exit 1"
    assert [step for step in steps if "sysrq" in step] == [
        f"echo {key} > /proc/sysrq-trigger" for key in ("s", "u", "b")
    ]
    assert steps[-2:] == ["systemctl reboot --force --force", "exit 1"]
    # systemd would expand these itself.
    assert not set("$%") & set(script(unit))


def test_the_shell_can_read_it(unit: str) -> None:
    done = subprocess.run(["sh", "-n", "-c", script(unit)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
def test_systemd_can_read_it(tmp_path: Path, unit: str) -> None:
    place = tmp_path / trial_deadman.UNIT
    place.write_text(unit)
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(place)], capture_output=True, text=True, check=False
    )
    assert [line for line in done.stderr.splitlines() if trial_deadman.UNIT in line] == []


def test_nothing_of_it_is_left(tmp_path: Path, unit: str) -> None:
    root = str(tmp_path)
    assert trial_deadman.left(root)
    assert trial_deadman.in_place(root, 900)
    assert not trial_deadman.in_place(root, 901)
    trial_deadman.remove(root)
    assert not trial_deadman.left(root)
    assert not trial_deadman.in_place(root, 900)
    assert [path for path in tmp_path.rglob("*") if not path.is_dir()] == []
    trial_deadman.remove(root)


def test_folders_go_that_hold_nothing_else(tmp_path: Path, unit: str) -> None:
    other = tmp_path / "etc/systemd/system/rescue.target.wants/other.service"
    other.symlink_to("../other.service")
    trial_deadman.remove(str(tmp_path))
    assert sorted(path.name for path in (tmp_path / "etc/systemd/system").iterdir()) == [
        "rescue.target.wants"
    ]
    assert other.is_symlink()


class Systemd:
    """What systemd has loaded, which outlives the unit's file.

    Attributes:
        state: What is-active prints.
        stopped: What it is after it was stopped.
        refuses: What stop says, "" when it works.
        calls: What was asked.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path, state: str = "active") -> None:
        (folder / "run/systemd/system").mkdir(parents=True, exist_ok=True)
        self.state = state
        self.stopped = "inactive"
        self.refuses = ""
        self.calls: list[str] = []
        monkeypatch.setattr(trial_deadman, "is_real", lambda _root: True)
        monkeypatch.setattr(trial_deadman, "systemctl", self.systemctl)

    def systemctl(self, _root: str, *words: str) -> None:
        self.calls.append(words[0])
        if words[0] == "stop":
            if self.refuses:
                raise power_unit.UnitError(f"systemctl stop: {self.refuses}")
            self.state = self.stopped
        elif words[0] == "is-active" and self.state != "active":
            raise power_unit.UnitError(f"systemctl is-active {words[1]}: {self.state}")


def test_a_countdown_whose_file_is_gone_is_stopped_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    systemd = Systemd(monkeypatch, tmp_path)
    trial_deadman.stop(str(tmp_path))
    assert (systemd.calls, systemd.state) == (["stop", "is-active"], "inactive")


@pytest.mark.parametrize("state", ["inactive", "failed", "unknown"])
def test_a_unit_that_is_not_loaded_need_not_be_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    systemd = Systemd(monkeypatch, tmp_path, state)
    systemd.refuses = f"Unit {trial_deadman.UNIT} not loaded."
    trial_deadman.stop(str(tmp_path))
    assert systemd.calls == ["stop", "is-active"]


@pytest.mark.parametrize("stopped", ["active", "activating", "Connection timed out"])
def test_nothing_becomes_permanent_while_the_countdown_may_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stopped: str
) -> None:
    node = Node(tmp_path)
    node.try_out()
    node.judge()
    old = node.permanent
    Path(node.root + trial_deadman.UNIT_FILE).unlink()
    systemd = Systemd(monkeypatch, tmp_path)
    systemd.stopped = stopped
    committed = node.commit()
    assert committed["failed"]
    assert f"was stopped, and is {stopped}" in committed["msg"]
    assert node.permanent == old


def test_a_countdown_that_does_not_stop_keeps_the_unit_and_the_old_arguments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = Node(tmp_path)
    node.try_out()
    node.judge()
    old = node.permanent

    def refuse(_root: str, *words: str) -> None:
        raise power_unit.UnitError(f"systemctl {words[0]}: Connection timed out")

    monkeypatch.setattr(trial_deadman, "systemctl", refuse)
    committed = node.commit()
    assert committed["failed"]
    assert "Connection timed out" in committed["msg"]
    assert node.permanent == old
    assert trial_deadman.left(node.root)


def test_without_systemd_there_is_no_switch_and_the_result_says_so(tmp_path: Path) -> None:
    node = Node(tmp_path)
    shutil.rmtree(tmp_path / "run/systemd")
    staged = node.stage()
    assert (staged["failed"], staged["deadman"]) == (False, False)
    assert any("systemd does not run here" in note for note in staged["notes"])
    assert not trial_deadman.left(node.root)
    assert node.apply() == "committed"
