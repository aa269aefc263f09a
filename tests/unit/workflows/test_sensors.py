"""What BMCs measure, as inspect and certify keep it: one BMC that answers, and others that do not."""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from bios_site import SECRET, Site

from nodeprep.model.bmc import BmcSensors
from nodeprep.model.codec import decode, encode_pretty
from nodeprep.model.facts import NodeFacts
from nodeprep.model.outputs import FactsList
from nodeprep.model.reading import Reading
from nodeprep.model.run import Run
from nodeprep.sim.bmc import SimulatedBmc
from nodeprep.sim.bmc.dump import Dump
from nodeprep.sim.bmc_trees import MAKES, bmc_tree
from nodeprep.workflows.bios_facts import with_bios
from nodeprep.workflows.inspect import Inspected, inspect
from nodeprep.workflows.sensors import keep_sensors
from nodeprep.workflows.session import Observed

FACTS = decode(
    (Path(__file__).parents[2] / "cases" / "knobs" / "facts.json").read_bytes(), NodeFacts, source="base"
)
CHASSIS = "/redfish/v1/Chassis"
NO_BIOS = Reading[Any].not_supported("not looked at in this test")


def link(uri: str) -> dict[str, str]:
    return {"@odata.id": uri}


def measuring() -> SimulatedBmc:
    """A BMC with an inlet, a GPU, a fan and a supply."""
    one = f"{CHASSIS}/1"
    more = {
        CHASSIS: {**link(CHASSIS), "Members": [link(one)]},
        one: {**link(one), "Thermal": link(f"{one}/Thermal"), "Power": link(f"{one}/Power")},
        f"{one}/Thermal": {
            "Temperatures": [
                {"Name": "Inlet Temp", "ReadingCelsius": 25, "UpperThresholdCritical": 42},
                {"Name": "GPU1 Temp", "ReadingCelsius": 71},
            ],
            "Fans": [{"Name": "Fan 1", "Reading": 9000, "ReadingUnits": "RPM"}],
        },
        f"{one}/Power": {"PowerSupplies": [{"Name": "PSU 1", "PowerOutputWatts": 640}]},
    }
    dump = Dump({**bmc_tree(MAKES["dell"], serial="SIM1").resources, **more})
    return SimulatedBmc(dump, user="admin", password=SECRET)


class Looked(Site):
    """A session whose hosts answer, unless they are lost, and whose run folder is real."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.lost: set[str] = set()
        self.bios_of: dict[str, Reading[Any]] = {}
        self.described: list[bool] = []
        self.ledger = SimpleNamespace(describe=lambda *, simulated: self.described.append(simulated))

    @property
    def run_dir(self) -> Path:
        return self.home.path / "run"

    def observe(self, hosts: Sequence[str], **_more: Any) -> Observed:
        facts = {
            host: with_bios(replace(FACTS, host=host, simulated=False), self.bios_of.get(host, NO_BIOS))
            for host in hosts
            if host not in self.lost
        }
        return Observed(facts=facts, failed={})

    def save(self, relative: str, document: object) -> None:
        path = self.run_dir / relative
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(document if isinstance(document, bytes) else encode_pretty(document))

    def files(self) -> dict[str, str]:
        folder = self.run_dir / "bmc"
        return {path.name: path.read_text() for path in folder.iterdir()} if folder.exists() else {}

    def inspect(self) -> Inspected:
        return inspect(self)  # type: ignore[arg-type]

    def keep(self, facts: Mapping[str, NodeFacts], label: str) -> dict[str, Reading[BmcSensors]]:
        return keep_sensors(self, list(self.hosts), facts, label=label)  # type: ignore[arg-type]


@pytest.fixture
def dead() -> int:
    """A port on which nobody listens."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@pytest.fixture
def two(site: Any, dead: int) -> Looked:
    """n1, whose BMC answers, and n2, whose BMC is dead."""
    hosts: Looked = site(measuring(), measuring(), kind=Looked)
    hosts.changes["n2"] = {"port": dead}
    return hosts


def test_a_dead_bmc_is_the_error_of_its_own_host(two: Looked) -> None:
    found = two.inspect()
    good, bad = found.facts["n1"].sensors, found.facts["n2"].sensors
    assert good.value is not None
    assert [(one.place, one.kind, one.value) for one in good.value.sensors] == [
        ("inlet", "temperature_c", 25.0),
        ("gpu", "temperature_c", 71.0),
        ("fan", "fan_rpm", 9000.0),
        ("psu", "power_w", 640.0),
    ]
    assert bad.state == "error"
    assert "BMC of n2" in bad.detail
    # What a simulated BMC says makes the whole of that host simulated, and of no other.
    assert (found.facts["n1"].simulated, found.facts["n2"].simulated) == (True, False)
    assert two.described == [True]


def test_the_run_folder_has_what_was_read_and_why_the_other_was_not(two: Looked) -> None:
    found = two.inspect()
    files = two.files()
    assert sorted(files) == ["n1.sensors.json", "n2.sensors.error"]
    kept = decode(files["n1.sensors.json"].encode(), BmcSensors, source="n1")
    assert kept == found.facts["n1"].sensors.value
    assert "BMC of n2" in files["n2.sensors.error"]


def test_the_document_has_the_sensors_and_not_the_password(two: Looked) -> None:
    run = Run(id="r", verb="inspect", started_at="", ended_at="", hosts=(), nodeprep_version="0")
    text = encode_pretty(FactsList(run=run, hosts=two.inspect().facts)).decode()
    hosts = json.loads(text)["hosts"]
    assert hosts["n1"]["sensors"]["value"]["schema"] == "nodeprep.bmc_sensors/1"
    assert hosts["n2"]["sensors"]["state"] == "error"
    assert decode(text.encode(), FactsList, source="list").hosts["n1"].sensors.value is not None
    everything = text + "".join(path.read_text() for path in two.run_dir.rglob("*.*") if path.is_file())
    assert "GPU1 Temp" in everything
    assert SECRET not in everything


def test_the_bmc_of_a_lost_host_is_asked_too(two: Looked) -> None:
    two.lost = {"n1"}
    found = two.inspect()
    assert "n1" not in found.facts
    assert found.sensors["n1"].value is not None
    assert "n1.sensors.json" in two.files()


def test_a_host_without_a_bmc_has_no_error_and_no_file(two: Looked, monkeypatch: pytest.MonkeyPatch) -> None:
    bare = [replace(one, variables={}) for one in two.pick(["n1"])]
    monkeypatch.setattr(two, "pick", lambda _hosts: tuple(bare))
    two.hosts = {"n1": two.hosts["n1"]}
    assert two.inspect().facts["n1"].sensors.state == "not_supported"
    assert two.files() == {}


def test_a_bmc_that_gave_no_bios_gets_no_second_login(two: Looked) -> None:
    # It would answer.
    two.bios_of["n1"] = Reading.error("the BMC of n1 refuses the login")
    sensors = two.inspect().facts["n1"].sensors
    assert sensors.state == "error"
    assert "refuses the login" in sensors.detail


def test_a_mistake_in_one_access_is_told_of_its_own_host(two: Looked) -> None:
    two.changes["n2"] = {"user": None}
    found = two.inspect()
    assert found.facts["n1"].sensors.value is not None
    assert "user" in found.facts["n2"].sensors.detail


def test_before_and_after_a_load_are_two_files(two: Looked) -> None:
    two.changes.clear()
    for label in ("before", "after"):
        assert {one.state for one in two.keep({}, label).values()} == {"ok"}
    names = [f"n{number}.sensors.{label}.json" for number in (1, 2) for label in ("after", "before")]
    assert sorted(two.files()) == names
