"""The systemd side: the Ubuntu trap, drop-ins, and what is asked of systemctl."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from fake_systemctl import Systemctl

from nodeprep.node import durable, power_unit

PACKAGED = """\
[Unit]
Description=NVIDIA Persistence Daemon

[Service]
Type=forking
ExecStart=/usr/bin/nvidia-persistenced --user nvidia-persistenced --no-persistence-mode --verbose
ExecStopPost=/bin/rm -rf /var/run/nvidia-persistenced
"""
FOLDER = "/lib/systemd/system/"


@pytest.fixture
def root(tmp_path: Path) -> str:
    (tmp_path / "run/systemd/system").mkdir(parents=True)
    durable.put(str(tmp_path), power_unit.NODE_PYZ, "program")
    return str(tmp_path)


def plan(root: str, persistence: bool | None = True) -> dict[str, str | None]:
    config = {"limit": "93%", "persistence": persistence}
    return power_unit.plan(root, config, power_unit.NODE_PYZ).files


def test_the_packaged_unit_gets_a_drop_in_without_the_flag(root: str) -> None:
    durable.put(root, FOLDER + power_unit.PERSISTENCED, PACKAGED)
    text = plan(root)[power_unit.DROP_IN] or ""
    assert text.splitlines()[-2:] == [
        "ExecStart=",
        "ExecStart=/usr/bin/nvidia-persistenced --user nvidia-persistenced --verbose",
    ]
    power_unit.put_files(root, plan(root))
    # The drop-in does not make itself unnecessary.
    assert plan(root)[power_unit.DROP_IN] == text


@pytest.mark.parametrize(
    "unit",
    [
        "",
        PACKAGED.replace(" --no-persistence-mode", ""),
        PACKAGED.replace("ExecStart=", "# ExecStart="),
        PACKAGED + "ExecStart=\nExecStart=/usr/bin/nvidia-persistenced\n",
    ],
)
def test_no_drop_in_where_there_is_no_trap(root: str, unit: str) -> None:
    if unit:
        durable.put(root, FOLDER + power_unit.PERSISTENCED, unit)
    assert plan(root)[power_unit.DROP_IN] is None


def test_no_drop_in_when_persistence_is_not_wanted(root: str) -> None:
    durable.put(root, FOLDER + power_unit.PERSISTENCED, PACKAGED)
    assert plan(root, persistence=False)[power_unit.DROP_IN] is None


def test_someone_elses_drop_in_counts(root: str) -> None:
    durable.put(root, FOLDER + power_unit.PERSISTENCED, PACKAGED)
    other = f"/etc/systemd/system/{power_unit.PERSISTENCED}.d/override.conf"
    durable.put(
        root, other, "[Service]\nExecStart=\nExecStart=/usr/bin/nvidia-persistenced \\\n  --verbose\n"
    )
    assert power_unit.daemon_command(root).split() == ["/usr/bin/nvidia-persistenced", "--verbose"]
    assert plan(root)[power_unit.DROP_IN] is None


def test_the_unit_in_etc_comes_before_the_packaged_one(root: str) -> None:
    durable.put(root, FOLDER + power_unit.PERSISTENCED, PACKAGED)
    mine = PACKAGED.replace("--no-persistence-mode --verbose", "")
    durable.put(root, "/etc/systemd/system/" + power_unit.PERSISTENCED, mine)
    assert power_unit.TRAP not in power_unit.daemon_command(root)


def test_nothing_asked_for_makes_no_unit(root: str) -> None:
    nothing = power_unit.plan(root, {"limit": None, "persistence": None}, power_unit.NODE_PYZ)
    assert (nothing.files, nothing.obstacle) == ({}, "nothing was asked for")


def test_systemctl_is_never_run_for_a_simulated_root(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("systemctl must not run for a simulated root")

    monkeypatch.setattr(subprocess, "run", refuse)
    power_unit.put_files(root, plan(root))
    power_unit.enable(root)
    assert power_unit.in_force(root)
    assert power_unit.remove(root) == [power_unit.UNIT_FILE, power_unit.CONFIG]
    assert not power_unit.in_force(root)


def test_order_of_calls_on_a_real_machine(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    durable.put(root, FOLDER + power_unit.PERSISTENCED, PACKAGED)
    systemctl = Systemctl(monkeypatch, root)
    power_unit.put_files(root, plan(root))
    power_unit.enable(root)
    assert systemctl.calls == [
        ["daemon-reload"],
        ["try-restart", power_unit.PERSISTENCED],
        ["enable", power_unit.UNIT],
        ["restart", power_unit.UNIT],
    ]


def test_the_daemon_is_left_alone_without_a_drop_in(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    systemctl = Systemctl(monkeypatch, root)
    files = {path: text for path, text in plan(root).items() if text is not None}
    power_unit.put_files(root, files)
    assert systemctl.calls == [["daemon-reload"]]


def test_a_unit_that_fails_is_an_error_with_its_words(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    Systemctl(monkeypatch, root, restart="Job for nodeprep-gpu-power.service failed")
    with pytest.raises(power_unit.UnitError, match=r"systemctl restart .*: Job for"):
        power_unit.enable(root)


def test_an_enabled_unit_that_has_failed_is_not_in_force(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    power_unit.enable(root)
    assert power_unit.in_force(root)
    systemctl = Systemctl(monkeypatch, root)
    assert not power_unit.in_force(root)
    systemctl.unit = "active"
    assert power_unit.in_force(root)
    systemctl.unit = "failed"
    assert not power_unit.in_force(root)
