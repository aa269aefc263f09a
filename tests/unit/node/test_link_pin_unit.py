"""The unit that pins links at boot: when it runs, and what is asked of systemctl."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from link_pin_root import FIRST_PORT, node_with, targets

from nodeprep.node import durable, link_pin, link_pin_unit, power_unit
from nodeprep.node.link_pin_unit import ENABLED_LINK, UNIT, UNIT_FILE
from nodeprep.node.reading import NotSupported


class Systemctl:
    """Knows the unit as systemd would; what it is told to refuse fails with those words."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, root: str, **refuses: str) -> None:
        self.root, self.refuses, self.unit = root, refuses, "inactive"
        self.calls: list[list[str]] = []
        for module in ("power_unit", "link_pin_unit", "link_pin_rollback"):
            monkeypatch.setattr(f"nodeprep.node.{module}.is_real", lambda _root: True)
        # The program is on a file system of the test's own.
        monkeypatch.setattr(link_pin_unit, "_there_at_early_boot", lambda _path: True)
        monkeypatch.setattr(subprocess, "run", self.run)

    def run(self, command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        verb, error = command[1], self.refuses.get(command[1], "")
        if verb in ("is-active", "is-failed"):
            return subprocess.CompletedProcess(command, int(verb != f"is-{self.unit}"), "", "")
        self.calls.append(command[1:])
        link = Path(self.root + ENABLED_LINK)
        if verb == "restart":
            self.unit = "failed" if error else "active"
        elif verb in ("stop", "reset-failed"):
            self.unit = "inactive"
        elif verb == "enable" and not error:
            link.parent.mkdir(parents=True, exist_ok=True)
            if not link.is_symlink():
                link.symlink_to(f"../{UNIT}")
        elif verb == "disable":
            link.unlink()
        return subprocess.CompletedProcess(command, 1 if error else 0, "", error)


@pytest.fixture
def node(tmp_path: Path) -> str:
    return node_with(tmp_path)


def setting(text: str, name: str) -> list[str]:
    lines = (line.partition("=") for line in text.splitlines())
    return [word for key, _, value in lines if key == name for word in value.split()]


def test_it_runs_before_anything_loads_the_driver(node: str) -> None:
    link_pin.apply(node, gen=4)
    text = durable.content(node, UNIT_FILE) or ""
    before = setting(text, "Before")
    assert {
        "systemd-udev-trigger.service",
        "systemd-modules-load.service",
        "nvidia-persistenced.service",
    } < set(before)
    # The default dependencies would put it after sysinit.target, which waits for udev.
    assert setting(text, "DefaultDependencies") == ["no"]
    assert setting(text, "WantedBy") == ["sysinit.target"]
    # Waiting for a mount would wait for udev, which waits for this unit.
    assert not setting(text, "After")
    assert not setting(text, "RequiresMountsFor")
    assert setting(text, "ExecStart")[1:] == [power_unit.NODE_PYZ, "link-pin", "--apply"]
    assert str(Path(node + ENABLED_LINK).readlink()) == f"../{UNIT}"


def test_order_of_calls_on_a_real_machine(node: str, monkeypatch: pytest.MonkeyPatch) -> None:
    systemctl = Systemctl(monkeypatch, node)
    assert not link_pin.apply(node, gen=4)["failed"]
    assert systemctl.calls == [["daemon-reload"], ["enable", UNIT], ["restart", UNIT]]
    assert not link_pin.apply(node, gen=4)["changed"]
    assert len(systemctl.calls) == 3
    link_pin.forget(node)
    assert systemctl.calls[3:] == [["disable", UNIT], ["stop", UNIT], ["daemon-reload"]]


def test_it_is_not_started_under_a_driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = node_with(tmp_path, driver="nvidia")
    systemctl = Systemctl(monkeypatch, root)
    assert link_pin.apply(root, gen=4)["pending_reboot"]
    assert systemctl.calls == [["daemon-reload"], ["enable", UNIT]]
    assert link_pin_unit.observe(root)["enabled"]
    assert not link_pin.apply(root, gen=4)["changed"]


@pytest.mark.parametrize("verb", ["enable", "restart", "daemon-reload"])
def test_what_systemd_refuses_takes_back_all(node: str, monkeypatch: pytest.MonkeyPatch, verb: str) -> None:
    systemctl = Systemctl(monkeypatch, node, **{verb: "refused by policy"})
    result = link_pin.apply(node, gen=4)
    assert result["failed"]
    assert "refused by policy" in result["msg"]
    assert targets(node)[FIRST_PORT] == (5, 5, 5)
    assert not os.path.lexists(node + ENABLED_LINK)
    assert durable.content(node, UNIT_FILE) is None
    assert systemctl.unit == "inactive"


def test_a_unit_that_failed_at_boot_is_not_taken_for_a_pin(
    node: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    link_pin.apply(node, gen=4)
    systemctl = Systemctl(monkeypatch, node)
    systemctl.unit = "failed"
    assert not link_pin_unit.observe(node)["enabled"]
    assert link_pin.apply(node, gen=4)["changed"]
    assert link_pin_unit.observe(node)["enabled"]


def test_what_is_observed_without_a_pin_or_with_a_damaged_one(node: str) -> None:
    nothing = {"enabled": False, "gen": None, "ports": []}
    assert link_pin_unit.observe(node) == nothing
    link_pin.apply(node, gen=4)
    durable.put(
        node, link_pin_unit.CONFIG, '{"schema": "nodeprep.pcie_link/1", "gen": 4, "links": [{"port": 1}]}'
    )
    assert link_pin_unit.observe(node) == nothing
    Path(node, "run/systemd/system").rmdir()
    with pytest.raises(NotSupported, match="systemd does not run"):
        link_pin_unit.observe(node)


def test_a_program_that_is_mounted_later_is_an_obstacle(node: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link_pin_unit, "is_real", lambda _root: True)
    monkeypatch.setattr(link_pin_unit, "_there_at_early_boot", lambda path: path != power_unit.NODE_PYZ)
    result = link_pin.apply(node, gen=4)
    assert "is on a file system that is mounted after the driver loads" in result["msg"]
    assert "/usr/lib/nodeprep" in result["hint"]


def test_early_file_systems() -> None:
    assert link_pin_unit._there_at_early_boot("/usr")
    assert not link_pin_unit._there_at_early_boot("/proc/self")


def test_what_runs_before_the_drivers_load_does_not_load_nvml() -> None:
    """Compiling nvidia-ml-py out of an archive took 40 of 42 s of the unit on a virtual machine."""
    program = (
        "import sys\n"
        "from nodeprep.node.__main__ import main\n"
        "main(['link-pin', '--show', '--root', '/nonexistent'])\n"
        "sys.exit(any('nvml' in name for name in sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "links" in done.stdout
