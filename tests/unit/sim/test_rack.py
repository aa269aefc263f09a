"""The rack on disk: the same every time, nothing outside its folder, nothing overwritten by accident."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from pathlib import Path

import pytest
import yaml

from nodeprep.errors import UsageError
from nodeprep.model.policy import Policy
from nodeprep.node import observe
from nodeprep.profiles import settings_from_variables
from nodeprep.sim.rack import build_rack


def tree(folder: Path) -> dict[str, str]:
    """Every file below a folder with its digest, every link with its target."""
    found: dict[str, str] = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = f"-> {path.readlink()}"
        elif path.is_file():
            found[name] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def gpus(root: Path) -> list[dict[str, object]]:
    return list(json.loads((root / "usr/lib/nodeprep/gpus.json").read_text())["gpus"])


def test_eight_nodes_with_eight_gpus_each_are_built_in_a_moment(tmp_path: Path) -> None:
    started = os.times().user
    rack = build_rack(tmp_path / "rack")
    # The rest is the file system's time, which depends on who else uses it.
    assert os.times().user - started < 1.5
    assert [node.name for node in rack.nodes] == [f"node{number:02d}" for number in range(1, 9)]
    assert all(len(gpus(node.root)) == 8 for node in rack.nodes)


def test_the_same_rack_comes_out_every_time(tmp_path: Path) -> None:
    first, second = build_rack(tmp_path / "a", nodes=3), build_rack(tmp_path / "b", nodes=3)
    assert tree(first.folder / "nodes") == tree(second.folder / "nodes")


def test_every_identity_is_unique_in_the_rack(tmp_path: Path) -> None:
    rack = build_rack(tmp_path / "rack", nodes=7)
    identities = [gpu[key] for node in rack.nodes for gpu in gpus(node.root) for key in ("uuid", "serial")]
    identities += [
        (node.root / f"sys/class/dmi/id/{name}").read_text()
        for node in rack.nodes
        for name in ("product_serial", "product_uuid", "board_serial")
    ]
    identities += [(node.root / "proc/sys/kernel/random/boot_id").read_text() for node in rack.nodes]
    identities += [nic.mac for node in rack.nodes for nic in node.machine.description.nics]
    assert len(set(identities)) == len(identities)


def test_the_inventory_holds_for_every_command(tmp_path: Path) -> None:
    rack = build_rack(tmp_path / "rack", nodes=2)
    hosts = yaml.safe_load(rack.inventory.read_text())["simulated_rack"]["hosts"]
    assert hosts == {node.name: {"nodeprep_root": str(node.root)} for node in rack.nodes}
    assert all(node.root.is_absolute() for node in rack.nodes)
    variables = yaml.safe_load((rack.folder / "group_vars" / "all.yml").read_text())
    assert variables["ansible_connection"] == "local"
    assert variables["ansible_python_interpreter"] == sys.executable
    assert variables["nodeprep_nvml_deadline_s"] <= 5


def test_the_policy_is_a_valid_one(tmp_path: Path) -> None:
    rack = build_rack(tmp_path / "rack", nodes=1)
    variables = yaml.safe_load((rack.folder / "group_vars" / "all.yml").read_text())
    own = {key: value for key, value in variables.items() if key.startswith("nodeprep_")}
    policy = settings_from_variables(own, source="rack").policy
    assert isinstance(policy, Policy)
    assert policy.gpu.power_limit == "93%"
    assert (policy.certify.level, policy.certify.workload) == ("quick", "tiny")


def test_every_link_of_a_root_stays_inside_it(tmp_path: Path) -> None:
    root = build_rack(tmp_path / "rack", nodes=1).nodes[0].root.resolve()
    links = [path for path in root.rglob("*") if path.is_symlink()]
    assert links
    for link in links:
        assert link.resolve().is_relative_to(root)
        assert link.exists()


def test_a_rack_is_made_anew_without_traces_of_the_last_run(tmp_path: Path) -> None:
    rack = build_rack(tmp_path / "rack", nodes=2)
    state = rack.nodes[0].root / "run" / "nodeprep-nvml.json"
    state.parent.mkdir(exist_ok=True)
    state.write_text("{}")
    build_rack(tmp_path / "rack", nodes=1)
    assert not state.exists()
    assert sorted(path.name for path in (tmp_path / "rack" / "nodes").iterdir()) == ["node01"]


def test_a_folder_with_something_else_is_left_alone(tmp_path: Path) -> None:
    precious = tmp_path / "inventory.yml"
    precious.write_text("all: {hosts: {prod01: }}\n")
    (tmp_path / "nodes").mkdir()
    with pytest.raises(UsageError, match="left alone") as caught:
        build_rack(tmp_path)
    assert caught.value.hint
    assert precious.read_text() == "all: {hosts: {prod01: }}\n"
    assert (tmp_path / "nodes").is_dir()


@pytest.mark.parametrize("nodes", [0, -1, 65])
def test_a_rack_of_an_impossible_size_is_refused(nodes: int, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="1 to 64"):
        build_rack(tmp_path / "rack", nodes=nodes)
    assert not (tmp_path / "rack").exists()


def test_facts_of_a_node_are_read_without_a_single_error(tmp_path: Path) -> None:
    node = build_rack(tmp_path / "rack", nodes=1).nodes[0]
    facts = observe.collect(str(node.root), nvml_deadline_s=10)
    assert facts["simulated"] is True
    assert list(errors(facts)) == []


def errors(part: object, path: str = "") -> list[str]:
    """Paths of all readings in error."""
    if isinstance(part, dict):
        own = [f"{path}: {part.get('detail')}"] if part.get("state") == "error" else []
        return own + [line for key, value in part.items() for line in errors(value, f"{path}/{key}")]
    if isinstance(part, list):
        return [line for index, value in enumerate(part) for line in errors(value, f"{path}/{index}")]
    return []
