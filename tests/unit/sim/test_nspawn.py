"""The container tool, as far as it needs no container; the rest is in tests/contract/test_molecule.py."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from nodeprep.errors import UsageError
from nodeprep.node.power_unit import daemon_command
from nodeprep.sim.nspawn import Container, driver, host, make_container
from nodeprep.sim.nspawn.cli import main

PACKAGES = Path(host.__file__).with_name("driver_files") / "usr/lib/python3/dist-packages"


def test_a_folder_without_container_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="holds no container"):
        Container(tmp_path)
    assert main(["down", "--folder", str(tmp_path)]) == 2


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert "needs root" in host.obstacle()
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "systemd-container" in host.obstacle()
    with pytest.raises(UsageError, match=r"not installed: .*systemd-container"):
        make_container(tmp_path / "rack", print)
    assert not (tmp_path / "rack").exists()


def test_a_machine_that_forbids_namespaces_is_an_obstacle(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in host.NEEDED:
        stand_in = tmp_path / name
        stand_in.write_text("#!/bin/sh\necho unshare failed: Operation not permitted >&2\nexit 1\n")
        stand_in.chmod(0o755)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    assert "Operation not permitted" in host.obstacle()


def test_the_driver_says_that_it_is_simulated_and_its_daemon_has_the_trap(tmp_path: Path) -> None:
    assert driver.install(tmp_path, 3, "seed") == ["10de:2330"]
    gpus = json.loads((tmp_path / "usr/lib/nodeprep/gpus.json").read_text())["gpus"]
    assert len({gpu["uuid"] for gpu in gpus}) == 3
    assert all("simulated" in gpu["name"] for gpu in gpus)
    assert "--no-persistence-mode" in daemon_command(str(tmp_path)).split()
    assert os.access(tmp_path / "usr/bin/nvidia-persistenced", os.X_OK)


def test_every_program_gets_the_simulated_library_by_its_real_name_and_others_as_ever(tmp_path: Path) -> None:
    library = tmp_path / "simulated_nvml.py"
    library.write_text("class Library:\n    def __init__(self, root):\n        self.root = root\n")
    code = (
        "import nodeprep_simulated_nvml as n, ctypes\n"
        f"n._SOURCE = {str(library)!r}\n"
        "print(ctypes.CDLL('libnvidia-ml.so.1').root, ctypes.CDLL(None).getpid() > 0)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": str(PACKAGES)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "/ True\n", done.stderr
