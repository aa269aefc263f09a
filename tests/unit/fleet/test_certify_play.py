"""The certify playbook over three simulated nodes: one comes through, one is killed, one never starts."""

from __future__ import annotations

import json
import os
import signal
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from nodeprep.fleet import Fleet, FleetEvent, Outcome
from nodeprep.sim.rack import build_rack

RUN_ID = "run-1"


@dataclass(frozen=True)
class Certified:
    """What the phase left behind."""

    outcomes: Mapping[str, Outcome]
    events: list[FleetEvent]
    run_dir: Path
    roots: Mapping[str, Path]


@pytest.fixture(scope="module")
def certified(tmp_path_factory: pytest.TempPathFactory) -> Certified:
    folder = tmp_path_factory.mktemp("certify")
    rack = build_rack(folder / "rack", nodes=3)
    good, killed, unstarted = (node.name for node in rack.nodes)
    roots = {node.name: node.root for node in rack.nodes}
    listing = yaml.safe_load(rack.inventory.read_text())
    listing["simulated_rack"]["hosts"][unstarted]["nodeprep_probe_python"] = "/nonexistent/python3"
    rack.inventory.write_text(yaml.safe_dump(listing))
    events: list[FleetEvent] = []

    def on_event(event: FleetEvent) -> None:
        first = not any(each.kind == "progress" and each.host == killed for each in events)
        events.append(event)
        if first and event.kind == "progress" and event.host == killed:
            job = json.loads((roots[killed] / "var/lib/nodeprep/runs" / RUN_ID / "job.json").read_text())
            os.killpg(job["pgid"], signal.SIGKILL)

    run_dir = folder / "run"
    run_dir.mkdir()
    fleet = Fleet(run_dir=run_dir, inventory=rack.inventory, on_event=on_event)
    outcomes = fleet.run(
        "certify.yml",
        fleet.targets(None),
        phase="probe",
        extra_vars={
            "nodeprep_run_id": RUN_ID,
            "nodeprep_run_dir": str(run_dir),
            "nodeprep_probe_level": "extended",
            "nodeprep_probe_workload": "tiny",
            "nodeprep_probe_wait_s": 0.5,
        },
    )
    renamed = {"good": good, "killed": killed, "unstarted": unstarted}
    return Certified(
        {alias: outcomes[name] for alias, name in renamed.items()},
        events,
        run_dir,
        {alias: roots[name] for alias, name in renamed.items()},
    )


def home(certified: Certified, who: str) -> Path:
    return certified.run_dir / "probe" / certified.outcomes[who].host


def evidence(certified: Certified, who: str) -> list[str]:
    with tarfile.open(certified.run_dir / "evidence" / f"{certified.outcomes[who].host}.tar.gz") as archive:
        return sorted(archive.getnames())


def test_a_node_that_comes_through_brings_everything_home(certified: Certified) -> None:
    good = certified.outcomes["good"]
    assert (good.state, good.error) == ("done", "")
    assert good.data["probe"]["state"] == "completed"
    assert good.data["facts"]["schema"] == "nodeprep.facts/1"
    result = json.loads((home(certified, "good") / "result.json").read_text())
    assert result["state"] == "completed"
    assert result["simulated"] is True
    assert result["probe_digest"] == good.data["programs"]["probe"]["sha256"]
    assert len(list(home(certified, "good").glob("telemetry-*.json"))) == len(result["gpus"]) == 8
    assert {"MANIFEST.json", "facts/after.json", "kernel.log", "probe/result.json"} <= set(
        evidence(certified, "good")
    )


def test_progress_arrives_while_the_probe_runs(certified: Certified) -> None:
    host = certified.outcomes["good"].host
    kinds = [event.kind for event in certified.events if event.host == host]
    steps = [event.message for event in certified.events if event.host == host and event.kind == "task"]
    assert kinds.count("progress") >= 3
    assert kinds.index("progress") < kinds.index("task", kinds.index("progress"))
    assert "Look at the node again" in steps
    percents = [
        event.data["percent"] for event in certified.events if event.host == host and event.kind == "progress"
    ]
    assert percents == sorted(percents)
    assert percents[-1] == 100


def test_a_killed_probe_is_told_and_what_it_wrote_comes_home(certified: Certified) -> None:
    killed = certified.outcomes["killed"]
    assert killed.state == "done", killed.error
    assert killed.data["probe"]["state"] == "died"
    assert "SIGKILL" in killed.data["probe"]["error"]
    assert "facts" in killed.data
    assert (home(certified, "killed") / "progress.jsonl").stat().st_size > 0
    assert not (home(certified, "killed") / "result.json").exists()
    assert "probe/progress.jsonl" in evidence(certified, "killed")


def test_a_probe_that_cannot_start_still_leaves_facts_and_evidence(certified: Certified) -> None:
    unstarted = certified.outcomes["unstarted"]
    assert unstarted.state == "failed"
    assert "/nonexistent/python3 cannot be run" in unstarted.error
    assert "probe_python" in unstarted.hint
    assert "facts" in unstarted.data
    assert "facts/after.json" in evidence(certified, "unstarted")


def test_nothing_is_left_lying_about(certified: Certified) -> None:
    assert sorted(path.name for path in certified.run_dir.iterdir()) == ["events.jsonl", "evidence", "probe"]
    for root in certified.roots.values():
        assert list((root / "var/lib/nodeprep/evidence").iterdir()) == []
