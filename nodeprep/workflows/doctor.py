"""Doctor: is this controller ready?"""

from __future__ import annotations

import os
import shutil
import stat
import sys
from importlib import metadata, resources
from pathlib import Path
from typing import Literal

from nodeprep.model.outputs import Doctor, DoctorFinding
from nodeprep.workflows.home import Home


def doctor(home: Home) -> Doctor:
    """Looks; changes nothing."""
    findings = (
        _python(),
        _package("ansible-core", (2, 19), (2, 22)),
        _node_python(),
        _package("ansible-runner", (2, 4), None),
        _program("ansible-playbook", "reinstall nodeprep: ansible-core belongs to it"),
        _program("ssh", "install the OpenSSH client; local nodes work without it", required=False),
        _collection(),
        _bindings(),
        _home(home.path),
        *(_key(home.keys / f"{name}.pem") for name in ("nodeprep", "simulated")),
    )
    return Doctor(ready=all(finding.status != "missing" for finding in findings), findings=findings)


def _python() -> DoctorFinding:
    version = sys.version.split()[0]
    fits = (3, 11) <= sys.version_info[:2] <= (3, 13)
    return DoctorFinding(
        name="python",
        status="ok" if fits else "warning",
        detail=f"{version} at {sys.executable}",
        hint="" if fits else "3.11 to 3.13 are tested",
    )


def _package(name: str, least: tuple[int, int], below: tuple[int, int] | None) -> DoctorFinding:
    try:
        version = metadata.version(name)
    except metadata.PackageNotFoundError:
        return DoctorFinding(name=name, status="missing", detail="not installed", hint="reinstall nodeprep")
    major, minor, *_ = (int(part) for part in version.split(".")[:2])
    fits = (major, minor) >= least and (below is None or (major, minor) < below)
    limits = f">= {least[0]}.{least[1]}" + (f", < {below[0]}.{below[1]}" if below else "")
    return DoctorFinding(
        name=name,
        status="ok" if fits else "missing",
        detail=version,
        hint="" if fits else f"nodeprep wants {limits}",
    )


def _node_python() -> DoctorFinding:
    """Modules run with what ansible-core asks of a node's Python, which rises from release to release."""
    major, minor = (int(part) for part in metadata.version("ansible-core").split(".")[:2])
    least = "3.8" if (major, minor) < (2, 20) else "3.9"
    return DoctorFinding(
        name="Python on the nodes",
        status="ok",
        detail=f"{least} or later is needed with ansible-core {major}.{minor}",
        hint="" if least == "3.8" else "for nodes with Python 3.8: pip install 'ansible-core<2.20'",
    )


def _program(name: str, hint: str, *, required: bool = True) -> DoctorFinding:
    # Ansible's programs stand beside this Python in a virtual environment that may not be on PATH.
    beside = str(Path(sys.executable).parent)
    found = shutil.which(name, path=os.pathsep.join((beside, os.environ.get("PATH", ""))))
    absent: Literal["missing", "warning"] = "missing" if required else "warning"
    return DoctorFinding(
        name=name, status="ok" if found else absent, detail=found or "not found", hint="" if found else hint
    )


def _collection() -> DoctorFinding:
    rack = resources.files("nodeprep") / "ansible_collections" / "nodeprep" / "rack"
    parts = ("galaxy.yml", "roles/gpu_power/meta/argument_specs.yml", "playbooks/inspect.yml")
    absent = [part for part in parts if not rack.joinpath(*part.split("/")).is_file()]
    return DoctorFinding(
        name="collection nodeprep.rack",
        status="missing" if absent else "ok",
        detail=f"without {absent[0]}" if absent else str(rack),
        hint="reinstall nodeprep" if absent else "",
    )


def _bindings() -> DoctorFinding:
    file = resources.files("nodeprep") / "node" / "vendor" / "pynvml.py"
    there = file.is_file()
    return DoctorFinding(
        name="NVML bindings for nodes",
        status="ok" if there else "missing",
        detail=str(file) if there else "nodeprep/node/vendor/pynvml.py is not there",
        hint="" if there else "install nodeprep with pip, also from a checkout: pip install -e .",
    )


def _home(path: Path) -> DoctorFinding:
    existing = next(folder for folder in (path, *path.parents) if folder.exists())
    writable = os.access(existing, os.W_OK | os.X_OK)
    return DoctorFinding(
        name="home folder",
        status="ok" if writable else "missing",
        detail=str(path) + ("" if path.exists() else " (made on first use)"),
        hint="" if writable else f"{existing} is not writable: set NODEPREP_HOME",
    )


def _key(path: Path) -> DoctorFinding:
    name = f"key {path.stem}"
    if not path.exists() and path.with_suffix(".pub").exists():
        return DoctorFinding(
            name=name,
            status="missing",
            detail=f"{path} is gone, its public key is there",
            hint="bring it back, or move the public key to where certificates are verified",
        )
    if not path.exists():
        return DoctorFinding(name=name, status="ok", detail="made on first use")
    mode = stat.S_IMODE(path.stat().st_mode)
    private = mode & 0o077 == 0
    return DoctorFinding(
        name=name,
        status="ok" if private else "missing",
        detail=f"{path} mode {mode:04o}",
        hint="" if private else f"others can read it: chmod 600 {path}, and consider it stolen",
    )
