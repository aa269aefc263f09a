"""The collection as an Ansible user meets it: documentation, playbooks, modules packed for the node."""

from __future__ import annotations

import importlib
import io
import json
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

import nodeprep
from nodeprep.fleet.content import collections_path, program
from nodeprep.node import link_pin, observe
from nodeprep.node.apply import WRITERS
from nodeprep.sim.rack import build_rack

RACK = collections_path() / "ansible_collections" / "nodeprep" / "rack"
MODULES = sorted(path.stem for path in (RACK / "plugins" / "modules").glob("*.py"))
ACTIONS = sorted(path.stem for path in (RACK / "plugins" / "action").glob("*.py"))
ROLES = sorted(path.name for path in (RACK / "roles").iterdir())
PLAYBOOKS = sorted(path.name for path in (RACK / "playbooks").glob("*.yml"))


def ansible(name: str, *arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"ANSIBLE_COLLECTIONS_PATH": str(collections_path()), "ANSIBLE_NOCOLOR": "1"}
    environment.pop("ANSIBLE_FORCE_COLOR", None)
    return subprocess.run(
        [program(name), *arguments], env=environment, capture_output=True, text=True, check=False, **options
    )


@pytest.fixture(scope="module")
def documentation() -> dict[str, Any]:
    done = ansible("ansible-doc", "-t", "module", "--json", *(f"nodeprep.rack.{name}" for name in MODULES))
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_every_module_is_documented_with_examples_and_returns(documentation: dict[str, Any]) -> None:
    assert set(documentation) == {f"nodeprep.rack.{name}" for name in MODULES}
    for name, page in documentation.items():
        assert page["examples"].strip(), name
        assert page["return"], name
        assert "check_mode" in page["doc"]["attributes"], name


def test_every_action_has_a_page_and_every_page_a_plugin() -> None:
    pages_only = {
        name
        for name in MODULES
        if "def main" not in (RACK / "plugins" / "modules" / f"{name}.py").read_text()
    }
    assert pages_only == set(ACTIONS)


class Captured(Exception):
    """Carries the arguments a module gave to AnsibleModule."""


@pytest.fixture
def argument_spec(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], dict[str, Any]]:
    monkeypatch.syspath_prepend(str(collections_path()))

    def load(name: str) -> dict[str, Any]:
        module = importlib.import_module(f"ansible_collections.nodeprep.rack.plugins.modules.{name}")

        def capture(**given: Any) -> None:
            raise Captured(given)

        monkeypatch.setattr(module, "AnsibleModule", capture)
        with pytest.raises(Captured) as caught:
            module.main()
        found: dict[str, Any] = caught.value.args[0]
        return found

    return load


@pytest.mark.parametrize("name", sorted(set(MODULES) - set(ACTIONS)))
def test_the_page_says_what_the_module_takes(
    name: str, documentation: dict[str, Any], argument_spec: Callable[[str], dict[str, Any]]
) -> None:
    given = argument_spec(name)
    assert given["supports_check_mode"] is True
    compare(given["argument_spec"], documentation[f"nodeprep.rack.{name}"]["doc"]["options"], name)


def compare(spec: dict[str, Any], page: dict[str, Any], where: str) -> None:
    assert set(spec) == set(page), where
    for option, taken in spec.items():
        told = page[option]
        at = f"{where}.{option}"
        assert told["description"], at
        for key in ("type", "default", "choices", "elements"):
            assert told.get(key) == taken.get(key), f"{at}: {key}"
        assert bool(told.get("required")) == bool(taken.get("required")), at
        compare(taken.get("options", {}), told.get("suboptions", {}), at)


def test_the_groups_of_settings_are_those_of_the_node_code(
    argument_spec: Callable[[str], dict[str, Any]],
) -> None:
    assert set(argument_spec("apply")["argument_spec"]["settings"]["options"]) == set(WRITERS)


def test_every_role_is_documented_and_its_page_is_complete() -> None:
    done = ansible("ansible-doc", "-t", "role", "--json", *(f"nodeprep.rack.{name}" for name in ROLES))
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    for name in ROLES:
        options = found[f"nodeprep.rack.{name}"]["entry_points"]["main"]["options"]
        defaults = yaml.safe_load((RACK / "roles" / name / "defaults" / "main.yml").read_text())
        assert set(options) == set(defaults), name
        for option, told in options.items():
            if "default" in told:
                assert told["default"] == defaults[option], option
        readme = (RACK / "roles" / name / "README.md").read_text()
        assert [option for option in options if f"`{option}`" not in readme] == [], name


def test_every_playbook_ends_each_host_with_a_record_and_none_stops_the_others() -> None:
    assert {"apply.yml", "certify.yml", "inspect.yml", "stop.yml", "verify.yml"} <= set(PLAYBOOKS)
    for name in PLAYBOOKS:
        for play in yaml.safe_load((RACK / "playbooks" / name).read_text()):
            if "ansible.builtin.import_playbook" in play:
                assert play["ansible.builtin.import_playbook"] in PLAYBOOKS
                continue
            assert play["gather_facts"] is False, name
            assert "any_errors_fatal" not in play, name
            assert "max_fail_percentage" not in play, name
            assert "nodeprep.rack.phase" in play["tasks"][-1], name


def test_the_collections_version_is_the_packages() -> None:
    assert yaml.safe_load((RACK / "galaxy.yml").read_text())["version"] == nodeprep.__version__


# ---- playbooks of a user -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Played:
    """How a user's playbook ended for the one simulated node."""

    code: int
    out: str

    @property
    def changed(self) -> int:
        """Tasks that changed something, from the recap."""
        [found] = re.findall(r"^node .*changed=(\d+)", self.out, re.MULTILINE)
        return int(found)


Play = Callable[..., Played]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A healthy simulated node."""
    [node] = build_rack(tmp_path / "rack", nodes=1).nodes
    return node.root


@pytest.fixture
def play(tmp_path: Path, root: Path) -> Play:
    """Runs tasks as a user's own playbook would, against the simulated node."""

    def run(tasks: list[dict[str, Any]], *arguments: str, **variables: Any) -> Played:
        host = {
            "ansible_connection": "local",
            "ansible_python_interpreter": sys.executable,
            "nodeprep_root": str(root),
        }
        (tmp_path / "hosts.yml").write_text(yaml.safe_dump({"all": {"hosts": {"node": host}}}))
        book = {"hosts": "all", "gather_facts": False, "vars": variables, "tasks": tasks}
        (tmp_path / "book.yml").write_text(yaml.safe_dump([book]))
        done = ansible("ansible-playbook", "-i", "hosts.yml", "book.yml", *arguments, cwd=tmp_path)
        return Played(done.returncode, done.stdout + done.stderr)

    return run


def role(name: str) -> list[dict[str, Any]]:
    return [{"name": "The role", "ansible.builtin.import_role": {"name": f"nodeprep.rack.{name}"}}]


def limits(root: Path) -> set[float]:
    facts = observe.collect(str(root))
    return {gpu["power"]["enforced_w"]["value"] for gpu in facts["nvml"]["gpus"]["value"]}


def test_modules_reach_the_node_with_all_they_import(play: Play) -> None:
    """Ansible follows relative imports through the link, down to the NVML bindings."""
    look = {"nodeprep.rack.observe": {"root": "{{ nodeprep_root }}"}, "register": "seen"}
    say = {"ansible.builtin.debug": {"msg": "saw {{ seen.nodeprep.facts.nvml.gpus.value | length }} GPUs"}}
    done = play([look, say])
    assert done.code == 0, done.out
    assert "saw 8 GPUs" in done.out
    assert done.changed == 0


def test_gpu_power_changes_once_tells_before_and_undoes(play: Play, root: Path) -> None:
    [before] = limits(root)
    asked = {"nodeprep_gpu_power_limit": "90%"}
    told = play(role("gpu_power"), "--check", "--diff", **asked)
    assert told.code == 0, told.out
    assert told.changed >= 1
    assert "+0000:" in told.out
    assert limits(root) == {before}
    assert not (root / "usr/local/lib/nodeprep/node.pyz").exists()

    first = play(role("gpu_power"), **asked)
    assert first.code == 0, first.out
    assert first.changed == 2
    assert limits(root) == {before * 0.9}

    again = play(role("gpu_power"), **asked)
    assert (again.code, again.changed) == (0, 0), again.out

    undone = play(role("gpu_power"), nodeprep_gpu_power_state="absent")
    assert undone.code == 0, undone.out
    assert limits(root) == {before}
    assert not (root / "usr/local/lib/nodeprep/node.pyz").exists()
    assert play(role("gpu_power"), nodeprep_gpu_power_state="absent").changed == 0


@pytest.mark.parametrize(
    ("limit", "said"), [("fast", "which is no limit"), ("9999W", "9999"), ("1%", "nothing was changed")]
)
def test_gpu_power_refuses_what_cannot_be(play: Play, root: Path, limit: str, said: str) -> None:
    before = limits(root)
    refused = play(role("gpu_power"), nodeprep_gpu_power_limit=limit)
    assert refused.code != 0
    assert said in refused.out
    assert limits(root) == before


def link_targets(root: Path) -> set[tuple[int, int]]:
    """Target and present generation of the ports above GPUs."""
    return {(link["target_gen"], link["gen"]) for link in link_pin.show(str(root))["links"]}


def test_pcie_link_pins_once_tells_before_and_undoes(play: Play, root: Path) -> None:
    asked: dict[str, Any] = {"nodeprep_pcie_link_gen": 4, "nodeprep_pcie_link_live": True}
    told = play(role("pcie_link"), "--check", "--diff", **asked)
    assert told.code == 0, told.out
    assert "target Gen4" in told.out
    assert link_targets(root) == {(5, 5)}
    assert not (root / "usr/local/lib/nodeprep/node.pyz").exists()

    first = play(role("pcie_link"), **asked)
    assert first.code == 0, first.out
    assert link_targets(root) == {(4, 4)}

    again = play(role("pcie_link"), **asked)
    assert (again.code, again.changed) == (0, 0), again.out

    undone = play(role("pcie_link"), nodeprep_pcie_link_state="absent", nodeprep_pcie_link_live=True)
    assert undone.code == 0, undone.out
    assert link_targets(root) == {(5, 5)}
    assert not (root / "usr/local/lib/nodeprep/node.pyz").exists()
    assert play(role("pcie_link"), nodeprep_pcie_link_state="absent").changed == 0


@pytest.mark.parametrize(("gen", "said"), [(0, "no PCIe generation"), (6, "not Gen6")])
def test_pcie_link_refuses_what_cannot_be(play: Play, root: Path, gen: int, said: str) -> None:
    refused = play(role("pcie_link"), nodeprep_pcie_link_gen=gen)
    assert refused.code != 0
    assert said in refused.out
    assert link_targets(root) == {(5, 5)}


def wheel(folder: Path, name: str, version: str) -> None:
    """A wheel with one module, as an index would have it."""
    folder.mkdir(exist_ok=True)
    about = f"{name}-{version}.dist-info"
    files = {
        f"{name}.py": f"version = {version!r}\n",
        f"{about}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{path},,\n" for path in [*files, f"{about}/RECORD"])
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as archive:
        for path, text in {**files, f"{about}/RECORD": record}.items():
            archive.writestr(path, text)


def test_probe_runtime_from_a_wheelhouse(play: Play, tmp_path: Path) -> None:
    wheel(tmp_path / "wheels", "loadthing", "1.0")
    wheel(tmp_path / "wheels", "loadthing", "1.1")
    asked: dict[str, Any] = {
        "nodeprep_probe_runtime_wheelhouse": str(tmp_path / "wheels"),
        "nodeprep_probe_runtime_requirements": ["loadthing==1.0"],
        "nodeprep_probe_runtime_check": "loadthing",
        "nodeprep_probe_runtime_python": sys.executable,
        "nodeprep_probe_runtime_path": str(tmp_path / "env"),
    }
    told = play(role("probe_runtime"), "--check", **asked)
    assert told.code == 0, told.out
    assert told.changed >= 1
    assert "would install loadthing==1.0" in told.out
    assert not (tmp_path / "env").exists()

    first = play(role("probe_runtime"), **asked)
    assert first.code == 0, first.out
    python = tmp_path / "env" / "bin" / "python"
    ask = [str(python), "-c", "import loadthing; print(loadthing.version)"]
    assert subprocess.run(ask, capture_output=True, text=True, check=True).stdout.strip() == "1.0"

    again = play(role("probe_runtime"), **asked)
    assert (again.code, again.changed) == (0, 0), again.out

    newer = asked | {"nodeprep_probe_runtime_requirements": ["loadthing==1.1"]}
    assert play(role("probe_runtime"), **newer).changed == 1
    assert subprocess.run(ask, capture_output=True, text=True, check=True).stdout.strip() == "1.1"

    both = asked | {"nodeprep_probe_runtime_index_url": "https://index.example/simple"}
    refused = play(role("probe_runtime"), **both)
    assert refused.code != 0
    assert "both set" in refused.out


def test_evidence_alone_on_a_node_without_the_drivers_tools(play: Play, tmp_path: Path, root: Path) -> None:
    log = (root / "dev" / "kmsg").read_bytes()
    told = play(role("evidence"), "--check", nodeprep_evidence_dest=str(tmp_path / "home"))
    assert told.code == 0, told.out
    assert not (tmp_path / "home").exists()

    done = play(role("evidence"), nodeprep_evidence_dest=str(tmp_path / "home"))
    assert done.code == 0, done.out
    with tarfile.open(tmp_path / "home" / "node.tar.gz") as archive:
        names = archive.getnames()
        manifest = json.load(archive.extractfile("MANIFEST.json") or io.BytesIO())
        kernel = (archive.extractfile("kernel.log") or io.BytesIO()).read().decode()
        facts = json.load(archive.extractfile("facts/now.json") or io.BytesIO())
    assert sorted(names) == ["MANIFEST.json", "facts/now.json", "kernel.log"]
    assert manifest["simulated"] is True
    assert facts["schema"] == "nodeprep.facts/1"
    assert kernel.count("\n") == sum(line[:1].isdigit() for line in log.decode().splitlines())
    missing = {part["name"]: part["reason"] for part in manifest["parts"] if part["state"] == "missing"}
    assert missing == {
        "nvidia-smi-q.txt": "nvidia-smi is not installed",
        "nvidia-bug-report.log.gz": "nvidia-bug-report.sh is not installed",
    }
    assert (root / "dev" / "kmsg").read_bytes() == log
    assert list((root / "var/lib/nodeprep/evidence").iterdir()) == []


def test_evidence_from_programs_is_bounded_in_time(play: Play, tmp_path: Path, root: Path) -> None:
    programs = {
        "nvidia-smi": "echo half a report; exit 9",
        "nvidia-bug-report.sh": "echo begun >&2; sleep 60",
    }
    for name, script in programs.items():
        path = root / "usr" / "bin" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
    asked = {"nodeprep_evidence_dest": str(tmp_path / "home"), "nodeprep_evidence_deadline_s": 2}
    done = play(role("evidence"), **asked)
    assert done.code == 0, done.out
    with tarfile.open(tmp_path / "home" / "node.tar.gz") as archive:
        said = (archive.extractfile("nvidia-smi-q.txt") or io.BytesIO()).read()
        parts = json.load(archive.extractfile("MANIFEST.json") or io.BytesIO())["parts"]
    about = {part["name"]: (part["state"], part.get("reason", "")) for part in parts}
    assert said == b"half a report\n"
    assert about["nvidia-smi-q.txt"] == ("included", "nvidia-smi: exit code 9")
    state, reason = about["nvidia-bug-report.log.gz"]
    assert state == "missing"
    assert "killed" in reason
