"""`diagnose --host` and the BMC's event log: what the BMC says joins what the node's archive says.

The BMC is the simulated one of this folder, served over TLS; the archive is a small one made here.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from bios_site import SECRET, Site

from nodeprep.errors import UsageError
from nodeprep.fleet import Target
from nodeprep.model.diagnosis import Diagnosis
from nodeprep.sim.bmc import SimulatedBmc
from nodeprep.sim.bmc.dump import Dump
from nodeprep.sim.bmc_trees import MAKES, bmc_tree
from nodeprep.workflows.diagnose import EVENT_LOG
from tests.unit.workflows.diagnose_session import BANNER, DiagnoseSession, input_of

FAILED = "Power Supply 1: Failure detected"
LOST = "NVRM: Xid (PCI:0000:3d:00): 79, pid=1234, GPU has fallen off the bus."
PLAIN = (Target("n1", {}),)


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


def _diagnose(tmp_path: Path, served: Site, **more: Any) -> Diagnosis:
    session = DiagnoseSession(tmp_path / "run", served.pick(list(served.hosts)), **more)
    found = session.diagnose()
    assert found is not None
    assert [record[:2] for record in session.records] == [("n1", "diagnose")]
    assert (session.run_dir / "diagnosis" / "n1.json").exists()
    return found


def test_an_entry_of_the_bmcs_log_becomes_an_incident(tmp_path: Path, site: Any) -> None:
    served = site(_machine())
    served.hosts["n1"].state.logs.add(FAILED, severity="Critical")
    found = _diagnose(tmp_path, served)
    assert [(one.root.event, one.severity) for one in found.incidents] == [("sel.power_supply", "error")]
    (quote,) = found.incidents[0].evidence
    assert (quote.source, found.healthy) == (EVENT_LOG, False)
    assert "Failure detected" in quote.text
    assert quote.time


def test_a_makers_message_id_tells_kind_and_device(tmp_path: Path, site: Any) -> None:
    served = site(_machine())
    served.hosts["n1"].state.logs.add(
        "A fatal error was detected on a component at bus 174 device 3 function 0.",
        severity="Critical",
        MessageId="IDRAC.2.8.PCI1318",
    )
    served.hosts["n1"].state.logs.add("A link is up.", MessageId="IDRAC.2.8.NIC101")
    (incident,) = _diagnose(tmp_path, served).incidents
    assert (incident.root.event, incident.device, incident.severity) == (
        "sel.pcie_fatal",
        "0000:ae:03.0",
        "critical",
    )


def test_an_entry_of_several_lines_is_one(tmp_path: Path, site: Any) -> None:
    served = site(_machine())
    served.hosts["n1"].state.logs.add("A part\r\n broke", severity="Critical")
    (incident,) = _diagnose(tmp_path, served).incidents
    assert "A part broke" in incident.evidence[0].text


def test_an_event_log_without_entries_is_read_and_says_nothing(tmp_path: Path, site: Any) -> None:
    found = _diagnose(tmp_path, site(_machine()))
    assert (found.incidents, input_of(found).gaps, found.healthy) == ((), (), True)


def test_a_bmc_that_does_not_answer_is_a_gap_not_silence(tmp_path: Path, site: Any) -> None:
    served = site(_machine(), changes={"n1": {"fingerprint": "0" * 64}})
    found = _diagnose(tmp_path, served, kernel={1: BANNER, 2: LOST})
    assert [incident.xids for incident in found.incidents] == [(79,)]
    assert not found.healthy
    assert [gap for gap in input_of(found).gaps if "not read" in gap]


def test_the_bmc_of_a_node_that_does_not_answer_is_heard(tmp_path: Path, site: Any) -> None:
    served = site(_machine())
    served.hosts["n1"].state.logs.add(FAILED, severity="Critical")
    found = _diagnose(tmp_path, served, answers=False)
    assert [one.root.event for one in found.incidents] == ["sel.power_supply"]
    assert input_of(found, "n1.tar.gz").gaps == ("not read: the node gave no answer: no route to host",)


def test_a_node_of_which_nothing_answers_has_no_diagnosis(tmp_path: Path, site: Any) -> None:
    served = site(_machine(), changes={"n1": {"fingerprint": "0" * 64}})
    session = DiagnoseSession(tmp_path / "run", served.pick(["n1"]), answers=False)
    assert session.diagnose() is None
    assert session.records == [("n1", "diagnose", "unreachable")]


def test_a_second_diagnosis_tells_only_what_is_new(tmp_path: Path, site: Any) -> None:
    served = site(_machine())
    served.hosts["n1"].state.logs.add(FAILED, severity="Critical")
    targets = served.pick(["n1"])
    first = DiagnoseSession(tmp_path / "first", targets)
    assert first.diagnose() is not None
    second = DiagnoseSession(tmp_path / "second", targets, kernel={})
    quiet = second.diagnose(first.run_dir)
    assert quiet is not None
    assert (quiet.incidents, quiet.healthy) == ((), True)
    assert second.asked["n1"]["nodeprep_since"]["sequence"]["value"] == 1
    served.hosts["n1"].state.logs.add("Fan 1: Failure", severity="Critical")
    third = DiagnoseSession(tmp_path / "third", targets, kernel={2: LOST}).diagnose(first.run_dir)
    assert third is not None
    assert {one.root.event for one in third.incidents} == {"xid.79", "sel.fan"}


def _after(tmp_path: Path, **second: Any) -> Diagnosis:
    """The second diagnosis, after one that read messages 1 to 5."""
    first = DiagnoseSession(tmp_path / "first", PLAIN, kernel={1: BANNER, 5: "eth0: link up"})
    first.diagnose()
    found = DiagnoseSession(tmp_path / "second", PLAIN, **second).diagnose(first.run_dir)
    assert found is not None
    return found


def test_a_log_that_goes_on_lacks_no_beginning(tmp_path: Path) -> None:
    found = _after(tmp_path, kernel={6: "eth0: link down"})
    assert (input_of(found, "kernel.log").gaps, found.healthy) == ((), True)


def test_messages_that_were_lost_in_between_are_a_gap(tmp_path: Path) -> None:
    found = _after(tmp_path, kernel={9: "eth0: link down"})
    (gap,) = input_of(found, "kernel.log").gaps
    assert gap.startswith("3 messages after the earlier diagnosis are lost")
    assert not found.healthy


def test_after_a_reboot_the_log_is_looked_at_as_a_whole(tmp_path: Path) -> None:
    found = _after(tmp_path, kernel={3: "eth0: link down"}, boot_id="boot-2")
    (gap,) = input_of(found, "kernel.log").gaps
    assert "first messages after the boot are missing" in gap


def test_a_folder_without_cursors_is_refused_before_anything_is_asked(tmp_path: Path) -> None:
    session = DiagnoseSession(tmp_path / "run", PLAIN)
    with pytest.raises(UsageError, match="no cursors of an earlier diagnosis"):
        session.diagnose(tmp_path)
    assert session.records == []
