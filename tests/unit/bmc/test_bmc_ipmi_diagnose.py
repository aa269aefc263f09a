"""`diagnose --host` where the BMC speaks IPMI only: its event log against a real BMC simulator."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from nodeprep.bmc.password import ENVIRONMENT
from nodeprep.fleet import Target
from nodeprep.model.diagnosis import Diagnosis
from tests.unit.bmc.ipmi_sim import PASSWORD, Bmc
from tests.unit.workflows.diagnose_session import BANNER, DiagnoseSession, input_of

LOST = "NVRM: Xid (PCI:0000:3d:00): 79, pid=1234, GPU has fallen off the bus."


@pytest.fixture(autouse=True)
def _password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENVIRONMENT, PASSWORD)


def _session(folder: Path, port: int, **more: Any) -> DiagnoseSession:
    bmc = {"protocol": "ipmi", "address": "127.0.0.1", "port": port, "user": "admin"}
    return DiagnoseSession(folder, [Target("node01", {"nodeprep_bmc": bmc})], **more)


def _diagnosed(session: DiagnoseSession, since: Path | None = None) -> Diagnosis:
    found = session.diagnose(since)
    assert found is not None
    assert session.records == [("node01", "diagnose", "done")]
    return found


def _roots(found: Diagnosis) -> set[str]:
    return {incident.root.event for incident in found.incidents}


def test_what_the_hardware_logged_becomes_incidents(bmc: Bmc, tmp_path: Path) -> None:
    bmc.set_clock(datetime(2026, 3, 4, 10, 15, tzinfo=UTC))
    bmc.add_event("0xaa 0x03 0x00")
    for entry in ("0x08 3 0x6f 0x03", "0x07 4 0x6f 0x01", "0x07 5 0x6f 0x00", "0x0c 6 0x6f 0x01"):
        bmc.add_record(f"{entry} 0xff 0xff")
    found = _diagnosed(_session(tmp_path / "run", bmc.port))
    assert _roots(found) == {
        "sel.pcie_fatal", "sel.power_input", "sel.thermal_trip", "sel.processor", "sel.memory_uncorrected",
    }  # fmt: skip
    log = input_of(found)
    assert (log.lines, log.gaps, found.healthy) == (5, (), False)
    assert log.first.startswith("2026-03-04T10:15:0")


def test_an_event_log_without_entries_leaves_a_good_node_healthy(bmc: Bmc, tmp_path: Path) -> None:
    found = _diagnosed(_session(tmp_path / "run", bmc.port))
    assert (found.incidents, input_of(found).gaps, found.healthy) == ((), (), True)


def test_from_an_earlier_run_on_only_what_is_new(bmc: Bmc, tmp_path: Path) -> None:
    bmc.add_event()
    assert _roots(_diagnosed(_session(tmp_path / "first", bmc.port))) == {"sel.pcie_fatal"}
    quiet = _diagnosed(_session(tmp_path / "second", bmc.port, kernel={}), tmp_path / "first")
    assert (quiet.incidents, quiet.healthy) == ((), True)
    bmc.add_record("0x08 3 0x6f 0x01 0xff 0xff")
    third = _diagnosed(_session(tmp_path / "third", bmc.port, kernel={}), tmp_path / "second")
    assert _roots(third) == {"sel.power_supply"}


def test_a_log_that_was_cleared_since_the_earlier_run_is_a_gap(bmc: Bmc, tmp_path: Path) -> None:
    bmc.add_event()
    _diagnosed(_session(tmp_path / "first", bmc.port))
    # The BMC's clock counts seconds, also for the time of the last erasure.
    time.sleep(1.1)
    bmc.ipmitool("sel", "clear")
    found = _diagnosed(_session(tmp_path / "second", bmc.port, kernel={}), tmp_path / "first")
    (gap,) = input_of(found).gaps
    assert gap.startswith("the log was cleared")
    assert not found.healthy


def test_a_full_log_is_a_gap_and_its_entries_are_told(make_bmc: Callable[..., Bmc], tmp_path: Path) -> None:
    bmc = make_bmc(log_entries=2)
    bmc.add_event()
    bmc.add_event()
    with pytest.raises(AssertionError):
        bmc.add_event()
    found = _diagnosed(_session(tmp_path / "run", bmc.port))
    assert _roots(found) == {"sel.pcie_fatal"}
    assert input_of(found).gaps == ("the log is full and the BMC drops new entries",)


def test_entries_from_before_the_bmc_knew_the_time_have_none(bmc: Bmc, tmp_path: Path) -> None:
    bmc.add_event()
    found = _diagnosed(_session(tmp_path / "run", bmc.port))
    (incident,) = found.incidents
    assert "Pre-Init" in incident.evidence[0].text
    assert (incident.evidence[0].time, input_of(found).format) == ("", "ipmi_sel")


def test_a_bmc_that_is_silent_costs_only_its_own_log(silent_port: int, tmp_path: Path) -> None:
    found = _diagnosed(_session(tmp_path / "run", silent_port, kernel={1: BANNER, 2: LOST}))
    assert _roots(found) == {"xid.79"}
    assert "does not answer" in input_of(found).gaps[0]


def test_a_silent_bmc_of_a_good_node_rules_out_healthy(silent_port: int, tmp_path: Path) -> None:
    found = _diagnosed(_session(tmp_path / "run", silent_port))
    assert (found.incidents, found.healthy) == ((), False)


def test_after_silence_the_log_is_read_on_from_where_it_was_last_read(bmc: Bmc, tmp_path: Path) -> None:
    bmc.add_event()
    _diagnosed(_session(tmp_path / "first", bmc.port))
    bmc.freeze()
    _diagnosed(_session(tmp_path / "second", bmc.port, kernel={}), tmp_path / "first")
    bmc.thaw()
    found = _diagnosed(_session(tmp_path / "third", bmc.port, kernel={}), tmp_path / "second")
    assert (found.incidents, input_of(found).gaps) == ((), ())


def test_a_wrong_password_is_a_gap_and_written_nowhere(
    bmc: Bmc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ENVIRONMENT, "not-the-one")
    found = _diagnosed(_session(tmp_path / "run", bmc.port))
    (gap,) = input_of(found).gaps
    assert "refused the password of user 'admin'" in gap
    assert not found.healthy
    kept = [path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()]
    assert kept
    assert not any(b"not-the-one" in data for data in kept)
