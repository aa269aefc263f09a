"""The molecule scenarios on virtual machines: reboots and a real GRUB. See docs/molecule.md."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from nodeprep.sim.vm import processes

ROOT = Path(__file__).parents[2]
# What waits two minutes for a node to come back by itself is too long for every run.
SCENARIOS = {
    "kernel_args": pytest.mark.metal,
    "trial_rollback": pytest.mark.metal,
    "trial_deadman": pytest.mark.metal_full,
}
# Five boots of a machine whose processor is emulated, and the image the first time.
LIMIT_S = 2400
DESTROY_S = 300


@pytest.mark.metal
def test_every_scenario_on_a_virtual_machine_is_run() -> None:
    settings = (ROOT / "molecule").glob("*/molecule.yml")
    assert sorted(SCENARIOS) == sorted(
        path.parent.name for path in settings if "../vm_host/" in path.read_text()
    )


@pytest.mark.parametrize("scenario", [pytest.param(name, marks=mark) for name, mark in SCENARIOS.items()])
def test_scenario_on_a_virtual_machine(scenario: str, tmp_path: Path) -> None:
    try:
        status, said = molecule("test", scenario, tmp_path, LIMIT_S)
    except BaseException:
        # Molecule itself destroys only what it has seen fail.
        molecule("destroy", scenario, tmp_path, DESTROY_S)
        raise
    assert status == 0, said
    assert not processes.find(tmp_path / "m" / "rack")
    assert not (tmp_path / "m" / "rack").exists()


def molecule(command: str, scenario: str, folder: Path, timeout_s: float) -> tuple[int, str]:
    """Exit status and the end of the output."""
    programs = Path(sys.executable).parent
    environment = os.environ | {
        # Molecule calls Ansible's programs by name.
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(folder),
        # The image of the machines stays of use.
        "XDG_CACHE_HOME": os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache"),
        # Sockets in it have short paths.
        "MOLECULE_EPHEMERAL_DIRECTORY": str(folder / "m"),
        "NO_COLOR": "1",
    }
    words = [programs / "molecule", command, "--scenario-name", scenario]
    with subprocess.Popen(
        words,
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            said, _ = process.communicate(timeout=timeout_s)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    return process.returncode, said[-12000:]
