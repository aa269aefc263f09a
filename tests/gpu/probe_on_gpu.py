"""The probe as it is run on a real GPU. Where there is none, importing this skips, with the reason.

NODEPREP_PROBE_PYTHON names a Python with torch; without it the one that runs the tests.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PYTHON = os.environ.get("NODEPREP_PROBE_PYTHON", sys.executable)
SOURCES = Path(__file__).resolve().parents[2]


def _why_not() -> str:
    if not Path("/proc/driver/nvidia/version").exists() and not Path("/dev/nvidiactl").exists():
        return "no NVIDIA driver on this machine"
    ask = "import torch; print(torch.cuda.is_available())"
    asked = subprocess.run([PYTHON, "-c", ask], capture_output=True, text=True, check=False)
    if asked.returncode:
        return f"{PYTHON} has no torch"
    return "" if asked.stdout.strip() == "True" else f"the torch of {PYTHON} sees no CUDA device"


WHY_NOT = _why_not()
if WHY_NOT:
    # Whoever imports this is skipped with the reason.
    pytest.skip(WHY_NOT, allow_module_level=True)


def command(out: Path, *more: str) -> list[str]:
    return [PYTHON, "-m", "nodeprep.probe", "run", "--workload", "vit-g", "--out", str(out), *more]


def run(out: Path, *more: str) -> dict[str, Any]:
    done = subprocess.run(
        command(out, *more), cwd=SOURCES, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, f"{done.stderr}\n{(out / 'probe.log').read_text()}"
    result: dict[str, Any] = json.loads((out / "result.json").read_text())
    return result


def result(out: Path) -> dict[str, Any]:
    """What a probe left."""
    found: dict[str, Any] = json.loads((out / "result.json").read_text())
    return found
