"""`diagnose --host` and the BMC's event log: what the BMC says joins what the node's archive says.

The BMC is the simulated one of this folder, served over TLS; the archive is a small one made here.
"""

from __future__ import annotations

import io
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from bios_site import SECRET, Site

from nodeprep.fleet import Outcome, Target
from nodeprep.model.diagnosis import Diagnosis
from nodeprep.sim.bmc import SimulatedBmc
from nodeprep.sim.bmc.dump import Dump
from nodeprep.sim.bmc_trees import MAKES, bmc_tree
from nodeprep.workflows.diagnose import EVENT_LOG, diagnose_hosts
from nodeprep.workflows.session import Session

KERNEL_LOG = b"6,1,1000000,-;Linux version 6.8.0 (built for this test)\n"
FAILED = "Power Supply 1: Failure detected"


def _machine() -> SimulatedBmc:
    """A BMC with one event log, which the trees of the simulator leave out."""
    bodies = dict(bmc_tree(MAKES["dell"], serial="SIM1").resources)
    manager = next(uri for uri in bodies if "/Managers/" in uri)
    logs = f"{manager}/LogServices"
    bodies[manager] |= {"LogServices": {"@odata.id": logs}}
    bodies[logs] = {"@odata.id": logs, "Members": [{"@odata.id": f"{logs}/Sel"}]}
    bodies[f"{logs}/Sel"] = {
        "@odata.id": f"{logs}/Sel", "Id": "Sel", "Entries": {"@odata.id": f"{logs}/Sel/Entries"},
    }  # fmt: skip
    return SimulatedBmc(Dump(bodies), user="admin", password=SECRET)


class _Session:
    """Just enough of a session: its playbook brings one archive a host."""

    def __init__(self, run_dir: Path, targets: Sequence[Target]) -> None:
        self.run_dir = run_dir
        self.targets = targets
        self.fleet = SimpleNamespace(run=self._run)
        self.records: list[tuple[str, str, str]] = []
        self.saved: list[str] = []

    def _run(self, playbook: str, targets: Sequence[Target], **_more: Any) -> dict[str, Outcome]:
        assert playbook == "diagnose.yml"
        for target in targets:
            with tarfile.open(self.run_dir / "evidence" / f"{target.host}.tar.gz", "w:gz") as archive:
                member = tarfile.TarInfo("kernel.log")
                member.size = len(KERNEL_LOG)
                archive.addfile(member, io.BytesIO(KERNEL_LOG))
        return {target.host: Outcome(target.host, "done", {}, "", "") for target in targets}

    def record(self, host: str, phase: str, state: str, **_more: Any) -> None:
        self.records.append((host, phase, state))

    def save(self, relative: str, _document: object) -> None:
        self.saved.append(relative)


def _diagnose(tmp_path: Path, served: Site) -> Mapping[str, Diagnosis]:
    run_dir = tmp_path / "run"
    run_dir.mkdir()
    session = _Session(run_dir, served.pick(list(served.hosts)))
    found = diagnose_hosts(cast(Session, session))
    assert session.records == [("n1", "diagnose", "done")]
    assert session.saved == ["diagnosis/n1.json"]
    return found


def test_an_entry_of_the_bmcs_log_becomes_an_incident(tmp_path: Path, site: Any) -> None:
    served = site(_machine())
    served.hosts["n1"].state.logs.add(FAILED, severity="Critical")
    found = _diagnose(tmp_path, served)["n1"]
    assert [(one.root.event, one.severity) for one in found.incidents] == [("sel.power_supply", "error")]
    (quote,) = found.incidents[0].evidence
    assert (quote.source, found.healthy) == (EVENT_LOG, False)
    assert "Failure detected" in quote.text


def test_an_event_log_without_entries_is_read_and_says_nothing(tmp_path: Path, site: Any) -> None:
    found = _diagnose(tmp_path, site(_machine()))["n1"]
    (log,) = [each for each in found.inputs if each.source == EVENT_LOG]
    assert (found.incidents, log.gaps) == ((), ())


def test_a_bmc_that_does_not_answer_is_a_gap_not_silence(tmp_path: Path, site: Any) -> None:
    served = site(_machine(), changes={"n1": {"fingerprint": "0" * 64}})
    found = _diagnose(tmp_path, served)["n1"]
    (log,) = [each for each in found.inputs if each.source == EVENT_LOG]
    assert not found.healthy
    assert [gap for gap in log.gaps if "not read" in gap]
