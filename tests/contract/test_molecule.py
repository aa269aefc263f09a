"""The molecule scenarios pass: roles by themselves, as any Ansible user runs them. See docs/molecule.md.

Scenarios on virtual machines take minutes and run with the other tests on these (make test-metal).
"""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from nodeprep.sim.nspawn import obstacle
from nodeprep.sim.vm import processes

ROOT = Path(__file__).parents[2]
SCENARIOS = sorted(path.parent.name for path in (ROOT / "molecule").glob("*/molecule.yml"))
SIMULATED_S = 900
# The first time, the packages of the container are fetched.
CONTAINER_S = 1800
# Five boots of a machine whose processor is emulated, and the image the first time.
MACHINE_S = 2400


def settings(scenario: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROOT / "molecule" / scenario / "molecule.yml").read_text())
    return found


def on(kind: str) -> list[str]:
    """Scenarios whose host is made by a folder of that name; "" for those on a simulated node."""
    creators = {
        name: settings(name)["provisioner"].get("playbooks", {}).get("create", "") for name in SCENARIOS
    }
    return [name for name, create in creators.items() if (kind in create if kind else not create)]


def run(scenario: str, folder: Path, timeout_s: float) -> tuple[int, str]:
    """Exit status and output of `molecule test`; whatever happens, the scenario's host is destroyed."""
    try:
        return molecule("test", scenario, folder, timeout_s)
    except BaseException:
        # Molecule itself destroys only what it has seen fail.
        molecule("destroy", scenario, folder, SIMULATED_S)
        raise


def molecule(command: str, scenario: str, folder: Path, timeout_s: float) -> tuple[int, str]:
    programs = Path(sys.executable).parent
    environment = os.environ | {
        # Molecule calls Ansible's programs by name.
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(folder),
        # Packages and images of earlier runs stay of use; sockets in the folder have short paths.
        "XDG_CACHE_HOME": os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache"),
        "MOLECULE_EPHEMERAL_DIRECTORY": str(folder / "m"),
        "NO_COLOR": "1",
    }
    words = [programs / "molecule", command, "--scenario-name", scenario]
    with (
        # The sockets of ssh need short paths, which the folders of tests are not.
        tempfile.TemporaryDirectory(prefix="m-") as sockets,
        subprocess.Popen(
            words,
            cwd=ROOT,
            env=environment | {"ANSIBLE_SSH_CONTROL_PATH_DIR": sockets},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        ) as process,
    ):
        try:
            said, _ = process.communicate(timeout=timeout_s)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    return process.returncode, said[-12000:]


def test_there_are_scenarios_of_every_kind() -> None:
    kinds = on(""), on("nspawn_host"), on("vm_host")
    assert all(kinds)
    assert sorted(itertools.chain(*kinds)) == SCENARIOS


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_scenario_begins_and_ends_without_a_host(scenario: str) -> None:
    sequence = settings(scenario)["scenario"]["test_sequence"]
    assert (sequence[0], sequence[-1]) == ("destroy", "destroy")
    assert {"create", "converge", "verify"} <= {step.split()[0] for step in sequence}


@pytest.mark.parametrize("scenario", on(""))
def test_scenario_on_a_simulated_node(scenario: str, tmp_path: Path) -> None:
    status, said = run(scenario, tmp_path, SIMULATED_S)
    assert status == 0, said
    assert not (tmp_path / "m" / "rack").exists()


@pytest.mark.parametrize("scenario", on("nspawn_host"))
def test_scenario_in_a_container(scenario: str, tmp_path: Path) -> None:
    problem = obstacle()
    if problem and os.environ.get("NODEPREP_REQUIRE_NSPAWN") != "1":
        pytest.skip(f"no container can run here: {problem}")
    assert not problem
    status, said = run(scenario, tmp_path, CONTAINER_S)
    assert status == 0, said
    assert not processes.find(tmp_path / "m" / "rack")
    assert not (tmp_path / "m" / "rack").exists()


@pytest.mark.metal
@pytest.mark.parametrize("scenario", on("vm_host"))
def test_scenario_on_a_virtual_machine(scenario: str, tmp_path: Path) -> None:
    status, said = run(scenario, tmp_path, MACHINE_S)
    assert status == 0, said
    assert not processes.find(tmp_path / "m" / "rack")
    assert not (tmp_path / "m" / "rack").exists()
