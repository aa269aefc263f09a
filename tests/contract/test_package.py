"""What a user gets from a wheel or an sdist: each is installed into an empty environment and run from there.

Slow (builds, and two installations with all that nodeprep needs), but it is the only test that sees
what is missing from a package.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

import nodeprep
from nodeprep.sim.rack import build_rack

CHECKOUT = Path(nodeprep.__file__).parents[1]
RACK = "nodeprep/ansible_collections/nodeprep/rack"

pytestmark = pytest.mark.skipif(
    not (CHECKOUT / "pyproject.toml").is_file(), reason="nodeprep is not run from a checkout"
)


def run(*command: str | Path, cwd: Path | None = None, **environment: str) -> str:
    """The command's stdout; its whole output in the failure. Nothing of this environment leaks in."""
    kept = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("PYTHON", "ANSIBLE", "VIRTUAL"))
    }
    done = subprocess.run(
        [str(part) for part in command],
        env=kept | {"PIP_DISABLE_PIP_VERSION_CHECK": "1"} | environment,
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{command}:\n{done.stdout}\n{done.stderr}"
    return str(done.stdout)


@dataclass(frozen=True)
class Built:
    """A copy of the checkout, the sdist made of it, the wheel made from that, and one made from the copy."""

    checkout: Path
    sdist: Path
    wheel_of_sdist: Path
    wheel_of_checkout: Path


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    folder = tmp_path_factory.mktemp("dist")
    # A copy: building writes nodeprep/node/vendor, which other tests are using at this moment.
    copy = folder / "checkout"
    leave = shutil.ignore_patterns(".git", ".venv*", "__pycache__", "demo", "node_modules", ".*_cache")
    shutil.copytree(CHECKOUT, copy, symlinks=True, ignore=leave)
    shutil.rmtree(copy / "nodeprep" / "node" / "vendor")
    run(sys.executable, "-m", "build", "--outdir", folder / "a", copy)
    run(sys.executable, "-m", "build", "--wheel", "--outdir", folder / "b", copy)
    [sdist] = (folder / "a").glob("*.tar.gz")
    [first] = (folder / "a").glob("*.whl")
    [second] = (folder / "b").glob("*.whl")
    return Built(copy, sdist, first, second)


def contents(wheel: Path) -> set[str]:
    return set(zipfile.ZipFile(wheel).namelist())


def expected(folder: str, *suffixes: str) -> set[str]:
    """Files of a folder of the checkout, through its links."""
    found = set()
    for path, _folders, names in os.walk(CHECKOUT / folder, followlinks=True):
        found |= {
            str(Path(path, name).relative_to(CHECKOUT))
            for name in names
            if name.endswith(suffixes) and "__pycache__" not in path
        }
    assert found, folder
    return found


def test_both_ways_give_the_same_wheel(built: Built) -> None:
    assert contents(built.wheel_of_sdist) == contents(built.wheel_of_checkout)


def test_the_wheel_has_everything_that_runs(built: Built) -> None:
    names = contents(built.wheel_of_sdist)
    for folder, suffixes in {
        "nodeprep/node": (".py",),
        "nodeprep/probe": (".py", ".json"),
        "nodeprep/profiles": (".py", ".yaml"),
        "nodeprep/model/schemas": (".json",),
        "nodeprep/checks": (".py",),
        f"{RACK}/plugins": (".py",),
        f"{RACK}/roles": (".yml", ".md"),
        f"{RACK}/playbooks": (".yml",),
    }.items():
        assert sorted(expected(folder, *suffixes) - names) == [], folder
    assert "nodeprep/node/vendor/pynvml.py" in names
    assert f"{RACK}/plugins/module_utils/node/vendor/pynvml.py" in names
    assert f"{RACK}/galaxy.yml" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_the_sdist_has_the_sources_where_the_checkout_has_them(built: Built) -> None:
    with tarfile.open(built.sdist) as archive:
        names = {name.split("/", 1)[1] for name in archive.getnames() if "/" in name}
    for folder in ("roles", "playbooks"):
        assert sorted(expected(folder, ".yml", ".md") - names) == []
    assert {"pyproject.toml", "hatch_build.py", "LICENSE", "README.md"} <= names


def test_nothing_of_the_build_machine_gets_in(built: Built) -> None:
    with tarfile.open(built.sdist) as archive:
        names = [*archive.getnames(), *contents(built.wheel_of_sdist)]
        links = [entry.name for entry in archive if entry.issym() and entry.linkname.startswith("/")]
    assert [
        name for name in names if "__pycache__" in name or name.endswith(".pyc") or "/.venv" in name
    ] == []
    assert links == []


@dataclass(frozen=True)
class Installed:
    """An environment with nodeprep and what it asks for, and nothing else."""

    folder: Path

    def run(self, *arguments: str | Path, cwd: Path) -> str:
        """Runs the installed nodeprep."""
        return run(self.folder / "bin" / "nodeprep", *arguments, cwd=cwd)


@pytest.fixture(scope="module", params=["wheel", "sdist"])
def installed(
    request: pytest.FixtureRequest, built: Built, tmp_path_factory: pytest.TempPathFactory
) -> Installed:
    folder = tmp_path_factory.mktemp(f"from-{request.param}")
    venv.create(folder, with_pip=True)
    package = built.wheel_of_checkout if request.param == "wheel" else built.sdist
    run(folder / "bin" / "python", "-m", "pip", "install", "--quiet", package)
    return Installed(folder)


def facts_of_simulated_node(installed: Installed, tmp_path: Path) -> Mapping[str, object]:
    """Inspects a simulated node with the installed nodeprep, from a folder that is no checkout."""
    [node] = build_rack(tmp_path / "rack", nodes=1).nodes
    host = {
        "ansible_connection": "local",
        "ansible_python_interpreter": str(installed.folder / "bin" / "python"),
        "nodeprep_root": str(node.root),
    }
    inventory = tmp_path / "hosts.yml"
    inventory.write_text(yaml.safe_dump({"all": {"hosts": {"node01": host}}}))
    out = installed.run("inspect", "-i", inventory, "--json", "-o", tmp_path / "run", cwd=tmp_path)
    found: Mapping[str, object] = json.loads(out)
    return found


def test_an_installed_nodeprep_inspects_a_node(installed: Installed, tmp_path: Path) -> None:
    assert nodeprep.__version__ in installed.run("--version", cwd=tmp_path)
    [site] = (installed.folder / "lib").glob("python*/site-packages/nodeprep")
    assert not site.is_relative_to(CHECKOUT)
    document = facts_of_simulated_node(installed, tmp_path)
    assert document["schema"] == "nodeprep.facts/1"
    assert document["simulated"] is True
    gpus = document["nvml"]["gpus"]  # type: ignore[index]
    assert (gpus["state"], len(gpus["value"])) == ("ok", 8)


def test_an_installed_nodeprep_has_the_programs_and_pages(
    installed: Installed, built: Built, tmp_path: Path
) -> None:
    script = (
        "from nodeprep.fleet.archive import build; from nodeprep.fleet.content import playbook_path; "
        "print(build('node').sha256, build('probe').sha256); "
        "[playbook_path(n) for n in ('inspect.yml', 'apply.yml', 'certify.yml', 'stop.yml')]"
    )
    first = run(installed.folder / "bin" / "python", "-c", script, cwd=tmp_path)
    assert len(first.split()) == 2
    # The digest in a certificate names the same program wherever nodeprep was installed.
    assert first == run(sys.executable, "-c", script, cwd=built.checkout)
    [site] = (installed.folder / "lib").glob("python*/site-packages/nodeprep")
    for kind, name in (("module", "observe"), ("role", "gpu_power")):
        command = [installed.folder / "bin" / "ansible-doc", "-t", kind, f"nodeprep.rack.{name}"]
        assert name in run(*command, cwd=tmp_path, ANSIBLE_COLLECTIONS_PATH=str(site))
