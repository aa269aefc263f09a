"""The role bios against simulated BMCs, as an Ansible user without nodeprep's command line has it."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from nodeprep.fleet.content import collections_path, program
from nodeprep.sim.bmc import Served, SimulatedBmc, Tls, serving, tls_in
from nodeprep.sim.bmc_trees import MAKES, bmc_tree

SECRET = "Vault-Word_8251"
WANTED = {"iommu": "disabled", "aspm": "disabled"}


@dataclass(frozen=True)
class Played:
    """How a user's playbook ended."""

    code: int
    out: str

    @property
    def changed(self) -> int:
        """Tasks that changed something, from the recap."""
        [found] = re.findall(r"^node .*changed=(\d+)", self.out, re.MULTILINE)
        return int(found)


class Site:
    """A folder with an inventory whose one host has a BMC and nothing else: it cannot be connected to."""

    def __init__(self, folder: Path, served: Served, tls: Tls) -> None:
        self.folder = folder
        self.bmc = served.bmc
        host = {
            "ansible_host": "192.0.2.1",
            "nodeprep_bmc": {
                "protocol": "redfish",
                "address": "127.0.0.1",
                "port": served.port,
                "user": "admin",
                "ca": str(tls.ca),
            },
        }
        folder.mkdir(exist_ok=True)
        (folder / "hosts.yml").write_text(yaml.safe_dump({"all": {"hosts": {"node": host}}}))

    def play(self, *arguments: str, **variables: Any) -> Played:
        """Runs the role in a playbook of the user's own; the password is in a file of variables."""
        (self.folder / "secrets.yml").write_text(
            yaml.safe_dump({"nodeprep_bios_password": SECRET, **variables})
        )
        tasks = [{"name": "The role", "ansible.builtin.import_role": {"name": "nodeprep.rack.bios"}}]
        book = {"hosts": "all", "gather_facts": False, "vars_files": ["secrets.yml"], "tasks": tasks}
        (self.folder / "book.yml").write_text(yaml.safe_dump([book]))
        environment = {
            **os.environ,
            "ANSIBLE_COLLECTIONS_PATH": str(collections_path()),
            "ANSIBLE_NOCOLOR": "1",
            "ANSIBLE_DISPLAY_ARGS_TO_STDOUT": "1",
            "ANSIBLE_LOG_PATH": str(self.folder / "ansible.log"),
            "NODEPREP_HOME": str(self.folder / "home"),
        }
        environment.pop("ANSIBLE_FORCE_COLOR", None)
        environment.pop("NODEPREP_BMC_PASSWORD", None)
        done = subprocess.run(
            [program("ansible-playbook"), "-vvv", "-i", "hosts.yml", "book.yml", *arguments],
            env=environment, cwd=self.folder, capture_output=True, text=True, check=False, timeout=300,
        )  # fmt: skip
        with (self.folder / "said.txt").open("a") as said:
            said.write(done.stdout + done.stderr)
        return Played(done.returncode, done.stdout + done.stderr)

    @property
    def current(self) -> dict[str, Any]:
        """Values in effect."""
        self.bmc.state.advance()
        return dict(self.bmc.state.settings.current)


def site(folder: Path, make: str, *, without: tuple[str, ...] = (), faults: tuple[str, ...] = ()) -> Any:
    """A site whose BMC is served while it is used."""
    tree = bmc_tree(MAKES[make], serial="SIM00001", without=without)
    bmc = SimulatedBmc(tree, user="admin", password=SECRET, faults=faults, post_s=0.2)
    return serving([bmc], tls=tls_in(folder / "tls"))


@pytest.fixture(scope="module")
def dell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("dell")
    with site(folder, "dell") as (served,):
        yield Site(folder / "site", served, tls_in(folder / "tls"))


class TestLife:
    """One machine from before the first run to after the last; one test, so that nothing parts its steps."""

    def test_of_one_machine(self, dell: Site) -> None:
        self._check_mode_tells_and_changes_nothing(dell)
        self._the_first_run_brings_it_into_effect(dell)
        self._the_second_run_changes_nothing(dell)
        self._it_is_taken_back_once(dell)
        self._the_password_is_in_no_output_log_or_record(dell)

    def _check_mode_tells_and_changes_nothing(self, dell: Site) -> None:
        before = dell.current
        told = dell.play("--check", "--diff", nodeprep_bios_knobs=WANTED)
        assert told.code == 0, told.out
        assert told.changed == 1
        assert "-ProcVirtualization: Enabled" in told.out
        assert "+ProcVirtualization: Disabled" in told.out
        assert dell.current == before
        assert dell.bmc.state.settings.waiting == {}
        assert not (dell.folder / "home" / "runs").exists()

    def _the_first_run_brings_it_into_effect(self, dell: Site) -> None:
        first = dell.play(nodeprep_bios_knobs=WANTED)
        assert first.code == 0, first.out
        assert first.changed == 1
        assert dell.current["ProcVirtualization"] == "Disabled"

    def _the_second_run_changes_nothing(self, dell: Site) -> None:
        boots = dell.bmc.state.host.boots_begun
        again = dell.play("--diff", nodeprep_bios_knobs=WANTED)
        assert (again.code, again.changed) == (0, 0), again.out
        assert dell.bmc.state.host.boots_begun == boots
        told = dell.play("--check", nodeprep_bios_knobs=WANTED)
        assert (told.code, told.changed) == (0, 0), told.out

    def _it_is_taken_back_once(self, dell: Site) -> None:
        told = dell.play("--check", "--diff", nodeprep_bios_state="restored")
        assert (told.code, told.changed) == (0, 1), told.out
        assert "+ProcVirtualization: Enabled" in told.out
        assert dell.current["ProcVirtualization"] == "Disabled"
        back = dell.play(nodeprep_bios_state="restored")
        assert (back.code, back.changed) == (0, 1), back.out
        assert dell.current["ProcVirtualization"] == "Enabled"
        again = dell.play(nodeprep_bios_state="restored")
        assert (again.code, again.changed) == (0, 0), again.out

    def _the_password_is_in_no_output_log_or_record(self, dell: Site) -> None:
        (dell.folder / "secrets.yml").unlink()
        files = [path for path in dell.folder.rglob("*") if path.is_file()]
        assert any(path.name == "bios_apply.json" for path in files)
        assert (dell.folder / "ansible.log").stat().st_size > 0
        assert "nodeprep_bios_knobs" in (dell.folder / "said.txt").read_text()
        assert [path for path in files if SECRET.encode() in path.read_bytes()] == []


def test_a_knob_that_the_bios_lacks_keeps_the_others_from_being_written(tmp_path: Path) -> None:
    with site(tmp_path, "nvidia", without=("ASPM",)) as (served,):
        place = Site(tmp_path / "site", served, tls_in(tmp_path / "tls"))
        refused = place.play(nodeprep_bios_knobs=WANTED)
        assert refused.code != 0
        assert "aspm=disabled: unsupported" in refused.out
        assert "nothing was written" in refused.out
        assert place.current["IOMMU"] == "Enabled"
        assert place.bmc.state.settings.waiting == {}
        staged = place.play(
            nodeprep_bios_knobs=WANTED, nodeprep_bios_unsupported="accept", nodeprep_bios_reset=False
        )
        assert (staged.code, staged.changed) == (0, 1), staged.out
        assert place.bmc.state.settings.waiting == {"IOMMU": "Disabled"}
        again = place.play(
            nodeprep_bios_knobs=WANTED, nodeprep_bios_unsupported="accept", nodeprep_bios_reset=False
        )
        assert (again.code, again.changed) == (0, 0), again.out


def test_a_licence_that_is_missing_is_a_failure_in_the_bmcs_words(tmp_path: Path) -> None:
    with site(tmp_path, "supermicro", faults=("licence",)) as (served,):
        place = Site(tmp_path / "site", served, tls_in(tmp_path / "tls"))
        refused = place.play(nodeprep_bios_knobs={"iommu": "disabled"})
        assert refused.code != 0
        assert "licen" in refused.out.lower()
        assert place.bmc.state.host.boots_begun == 0
        assert SECRET not in refused.out


def test_another_certificate_is_refused_before_the_password_is_sent(tmp_path: Path) -> None:
    with site(tmp_path, "dell") as (served,):
        place = Site(tmp_path / "site", served, tls_in(tmp_path / "another"))
        refused = place.play(nodeprep_bios_knobs=WANTED)
        assert refused.code != 0
        assert "certificate" in refused.out
        assert place.current["ProcVirtualization"] == "Enabled"
