"""The molecule scenarios pass: roles by themselves, as any Ansible user runs them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCENARIOS = sorted(path.parent.name for path in (ROOT / "molecule").glob("*/molecule.yml"))


def test_there_are_scenarios() -> None:
    assert "gpu_power" in SCENARIOS


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_scenario(scenario: str, tmp_path: Path) -> None:
    programs = Path(sys.executable).parent
    environment = os.environ | {
        # Molecule calls Ansible's programs by name.
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "NO_COLOR": "1",
    }
    done = subprocess.run(
        [programs / "molecule", "test", "--scenario-name", scenario],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-6000:]
