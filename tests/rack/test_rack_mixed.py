"""The demo's six stories through the command line: the whole way, Ansible included."""

from __future__ import annotations

import pytest
from commands import Cli, Said

from nodeprep.certify.statement import read_unverified
from nodeprep.sim.rack import RackInventory, build_rack
from nodeprep.sim.stories import check_stories


@pytest.fixture(scope="module")
def rack(tmp_path_factory: pytest.TempPathFactory) -> RackInventory:
    return build_rack(tmp_path_factory.mktemp("mixed") / "rack", nodes=6, gpus=3)


@pytest.fixture(scope="module")
def cli(tmp_path_factory: pytest.TempPathFactory) -> Cli:
    return Cli(tmp_path_factory.mktemp("home"))


@pytest.fixture(scope="module")
def applied(cli: Cli, rack: RackInventory) -> Said:
    return cli("apply", "--yes", "-i", rack.inventory, "--json")


@pytest.fixture(scope="module")
def certified(cli: Cli, rack: RackInventory, applied: Said) -> Said:
    return cli("certify", "-i", rack.inventory, "-o", rack.folder / "run", "--json")


def test_apply_is_no_success_while_the_state_of_a_node_is_unknown(applied: Said) -> None:
    hosts = applied.document["hosts"]
    unknown = {
        host: {change["knob"] for change in application["before"]["changes"] if change["status"] == "unknown"}
        for host, application in hosts.items()
    }
    assert "gpu_power_limit" in unknown["node06"], "NVML hangs there"
    assert not unknown["node01"]
    assert {hosts[host]["state"] for host in ("node01", "node02", "node04", "node05")} == {"applied"}
    assert applied.code == 21


def test_the_worst_verdict_is_the_exit_code(certified: Said) -> None:
    assert certified.code == 20, certified.stderr


def test_every_host_has_its_envelope(certified: Said, rack: RackInventory) -> None:
    assert certified.document["schema"] == "nodeprep.certificate_list/1"
    assert sorted(certified.document["hosts"]) == [node.name for node in rack.nodes]


def test_every_story_is_told_right(certified: Said, rack: RackInventory) -> None:
    files = {node.name: rack.folder / "run" / "certificates" / f"{node.name}.json" for node in rack.nodes}
    certificates = {
        host: read_unverified(file.read_bytes(), source=str(file))[0] for host, file in files.items()
    }
    wrong = [story for story in check_stories(rack, certificates) if not story.told_right]
    assert wrong == []
