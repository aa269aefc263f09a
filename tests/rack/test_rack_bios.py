"""BIOS knobs in the ordinary flow: a simulated node and its simulated BMC, command by command."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from commands import Cli, Said

from nodeprep.sim.rack import RackInventory, build_rack
from nodeprep.sim.rack_bmcs import serving_bmcs

NODE = "node01"


@dataclass(frozen=True)
class Watched:
    """A command, and whether the password was seen among the arguments of any process meanwhile."""

    said: Said
    seen: bool


@pytest.fixture(scope="module")
def rack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RackInventory]:
    built = build_rack(tmp_path_factory.mktemp("bios") / "rack", nodes=1, gpus=1)
    with serving_bmcs(built) as served:
        yield served


@pytest.fixture(scope="module")
def cli(tmp_path_factory: pytest.TempPathFactory) -> Cli:
    return Cli(tmp_path_factory.mktemp("bios-home"))


@pytest.fixture(scope="module")
def secret(rack: RackInventory) -> str:
    return (rack.folder / "bmc" / "password").read_text().strip()


@pytest.fixture(scope="module")
def planned(cli: Cli, rack: RackInventory) -> Said:
    return run(cli, "plan", "-i", rack.inventory, "--json")


@pytest.fixture(scope="module")
def checked(cli: Cli, rack: RackInventory, planned: Said) -> Said:
    return run(cli, "verify", "-i", rack.inventory, "--json")


@pytest.fixture(scope="module")
def applied(cli: Cli, rack: RackInventory, secret: str, checked: Said) -> Watched:
    over = threading.Event()
    seen = threading.Event()

    def watch() -> None:
        while not over.wait(0.2):
            if secret.encode() in arguments_of_all_processes():
                seen.set()

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        said = run(cli, "apply", "--yes", "-i", rack.inventory, "--json", "-v")
    finally:
        over.set()
        watcher.join()
    return Watched(said, seen.is_set())


@pytest.fixture(scope="module")
def rolled_back(cli: Cli, rack: RackInventory, applied: Watched) -> Said:
    return run(cli, "rollback", "--yes", "-i", rack.inventory, "--json")


def run(cli: Cli, *arguments: str | Path) -> Said:
    """A command; a reset of a host takes half a minute, and more on a busy machine."""
    return cli(*arguments, timeout_s=600)


def arguments_of_all_processes() -> bytes:
    found = b""
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            try:
                found += Path(entry.path, "cmdline").read_bytes()
            except OSError:
                continue
    return found


def of_bios(document: dict[str, Any], part: str) -> dict[str, dict[str, Any]]:
    """The changes of BIOS knobs, by what they are to be."""
    return {one["new"]: one for one in document[part] if one.get("knob") == "bios"}


def checks_of(said: Said) -> dict[str, str]:
    return {one["subject"]: one["status"] for one in said.document["checks"] if one["id"] == "bios_settings"}


def test_inspect_shows_the_bmc_and_the_knobs(cli: Cli, rack: RackInventory, checked: Said) -> None:
    told = run(cli, "inspect", "-i", rack.inventory)
    assert told.code == 0, told.stderr
    assert "dell PowerEdge" in told.stdout
    assert "iommu enabled" in told.stdout
    assert "not in this BIOS: " in told.stdout


def test_plan_names_each_attribute_with_old_and_new(planned: Said) -> None:
    assert planned.code == 10, planned.stderr
    changes = of_bios(planned.document, "changes")
    iommu = changes["iommu disabled"]
    assert (iommu["status"], iommu["needs_reboot"]) == ("change", True)
    assert [(one["name"], one["current"], one["value"]) for one in iommu["attributes"]] == [
        ("ProcVirtualization", "Enabled", "Disabled")
    ]
    assert iommu["why"]
    assert any("reset" in risk for risk in iommu["risks"])
    assert changes["aspm disabled"]["status"] == "ok"


def test_verify_rejects_what_the_bios_has_otherwise(checked: Said) -> None:
    assert checked.code == 20, checked.stderr
    assert checks_of(checked) == {"iommu": "FAIL", "aspm": "PASS"}


def test_apply_resets_once_and_reads_back(applied: Watched) -> None:
    said = applied.said
    assert said.code == 0, said.stderr
    assert said.document["state"] == "applied"
    (done,) = said.document["bios"]
    assert (done["state"], done["resets"], done["simulated"]) == ("applied", 1, True)
    assert [(one["name"], one["after"], one["result"]) for one in done["outcomes"]] == [
        ("ProcVirtualization", "Disabled", "taken")
    ]
    assert all(change["status"] == "ok" for change in said.document["after"]["changes"])


def test_a_second_apply_changes_nothing_and_verify_agrees(
    cli: Cli, rack: RackInventory, applied: Watched
) -> None:
    again = run(cli, "apply", "--yes", "-i", rack.inventory, "--json")
    assert (again.code, again.document["state"], again.document["bios"]) == (0, "unchanged", [])
    verified = run(cli, "verify", "-i", rack.inventory, "--json")
    assert verified.code == 0, verified.stderr
    assert checks_of(verified) == {"iommu": "PASS", "aspm": "PASS"}


def test_a_bmc_that_is_gone_is_an_error_and_no_pass(
    cli: Cli, rack: RackInventory, applied: Watched, tmp_path: Path
) -> None:
    access = yaml.safe_load((rack.folder / "host_vars" / f"{NODE}.yml").read_text())
    shared = yaml.safe_load((rack.folder / "group_vars" / "simulated_rack.yml").read_text())
    every = yaml.safe_load((rack.folder / "group_vars" / "all.yml").read_text())
    dead = {**every, **shared, "nodeprep_root": str(rack.nodes[0].root)}
    dead["nodeprep_bmc"] = {**access["nodeprep_bmc"], "port": 1}
    (tmp_path / "dead.yml").write_text(yaml.safe_dump({"all": {"hosts": {"dead": dead}}}))
    started = time.monotonic()
    said = run(cli, "verify", "-i", tmp_path / "dead.yml", "--json")
    assert time.monotonic() - started < 120
    assert said.code == 21, said.stderr
    assert checks_of(said) == {"iommu": "ERROR", "aspm": "ERROR"}


def test_rollback_takes_the_bios_back(cli: Cli, rack: RackInventory, rolled_back: Said) -> None:
    assert rolled_back.code == 0, rolled_back.stderr
    assert "bios" in rolled_back.document["restored"]
    assert rolled_back.document["state"] == "restored"
    told = run(cli, "inspect", "-i", rack.inventory, "--json").document["bios"]["value"]
    assert {one["knob"]: one["value"] for one in told["knobs"] if one["found"]}["iommu"] == "enabled"


def test_the_password_is_nowhere(
    cli: Cli, rack: RackInventory, secret: str, applied: Watched, rolled_back: Said
) -> None:
    assert not applied.seen, "in the arguments of a process"
    for said in (applied.said, rolled_back):
        assert secret not in said.stdout + said.stderr
    given = rack.folder / "bmc" / "password"
    looked_at = [path for top in (cli.home, rack.folder) for path in top.rglob("*") if path.is_file()]
    assert any(path.name == "events.jsonl" for path in looked_at)
    assert any(path.name == "bios_apply.json" for path in looked_at)
    assert json.loads(next(path for path in looked_at if path.name == "bios_apply.json").read_text())
    leaks = [path for path in looked_at if path != given and secret.encode() in path.read_bytes()]
    assert leaks == []
