"""BMCs of a simulated rack: who is served, what the inventory says meanwhile, and nothing afterwards."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
import yaml

from nodeprep.bmc.target import BmcTarget
from nodeprep.fleet import Target
from nodeprep.sim.bmc import SimulatedBmc, read_dump
from nodeprep.sim.bmc_trees import MAKES, bmc_tree
from nodeprep.sim.rack import build_rack
from nodeprep.sim.rack_bmcs import BIOS_POLICY, serving_bmcs
from nodeprep.workflows.bios_facts import bios_target


def test_the_inventory_names_each_bmc_while_it_is_served(tmp_path: Path) -> None:
    built = build_rack(tmp_path / "rack", nodes=8, gpus=1)
    plain = (built.folder / "group_vars" / "all.yml").read_text()
    with serving_bmcs(built) as rack:
        shared = yaml.safe_load((rack.folder / "group_vars" / "simulated_rack.yml").read_text())
        assert shared["nodeprep_policy"]["bios"] == BIOS_POLICY
        assert shared["nodeprep_policy"]["gpu"]
        secret = Path(shared["nodeprep_bmc_password_file"])
        assert stat.S_IMODE(secret.stat().st_mode) == 0o600
        ports = set()
        for node in rack.nodes:
            own = yaml.safe_load((rack.folder / "host_vars" / f"{node.name}.yml").read_text())
            target = bios_target(Target(node.name, {**shared, **own}), {})
            assert isinstance(target, BmcTarget)
            ports.add(target.port)
        assert len(ports) == 8
        trees = [read_dump(rack.folder / "bmc" / f"{node.name}.json") for node in rack.nodes]
        vendors = {SimulatedBmc(tree, user="u", password="p").conduct.vendor for tree in trees}
        assert vendors == {"dell", "hpe", "lenovo", "ami", "supermicro", "openbmc"}
    assert list((built.folder / "host_vars").iterdir()) == []
    assert not secret.exists()
    assert [path.name for path in (built.folder / "group_vars").iterdir()] == ["all.yml"]
    assert (built.folder / "group_vars" / "all.yml").read_text() == plain


def test_the_stories_of_bmcs_go_to_nodes_without_one(tmp_path: Path) -> None:
    built = build_rack(tmp_path / "rack", nodes=10, gpus=1)
    with serving_bmcs(built) as rack:
        changed = {
            now.name: now.conclusion.verdict
            for was, now in zip(built.nodes, rack.nodes, strict=True)
            if was.conclusion != now.conclusion
        }
        assert changed == {"node07": "inconclusive", "node08": "rejected"}
        assert all(node.title for node in rack.nodes)


@pytest.mark.parametrize("make", MAKES)
def test_each_tree_is_taken_for_its_vendors(make: str) -> None:
    tree = bmc_tree(MAKES[make], serial="S1")
    bmc = SimulatedBmc(tree, user="u", password="p")
    assert bmc.conduct.vendor == {"nvidia": "openbmc"}.get(make, make)
    assert tree.registry is not None
