from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from nodeprep.errors import DocumentError, ExitCode, NodeprepError
from nodeprep.fleet import DiskError, Ledger
from nodeprep.model.codec import decode
from nodeprep.model.run import Run


def a_run() -> Run:
    return Run(id="r1", verb="certify", started_at="2026-11-30T10:00:00+00:00", ended_at="", hosts=())


def on_disk(run_dir: Path) -> Run:
    return decode((run_dir / "run.json").read_bytes(), Run, source="run.json")


def test_every_host_is_unknown_on_disk_before_anything_happens(run_dir: Path) -> None:
    Ledger.create(run_dir, a_run(), ["n2", "n1"])
    assert [(record.host, record.state) for record in on_disk(run_dir).hosts] == [
        ("n2", "unknown"),
        ("n1", "unknown"),
    ]


def test_a_record_is_on_disk_when_the_call_returns(run_dir: Path) -> None:
    ledger = Ledger.create(run_dir, a_run(), ["n1", "n2"])
    ledger.record("n1", "inspect", "done")
    ledger.record("n1", "probe", "failed", error="no torch", hint="set probe_python")
    first, second = on_disk(run_dir).hosts
    assert first.phases == {"inspect": "done", "probe": "failed"}
    assert (first.state, first.error, first.hint) == ("failed", "no torch", "set probe_python")
    assert second.state == "unknown"


def test_a_phase_that_runs_again_moves_to_the_end(run_dir: Path) -> None:
    ledger = Ledger.create(run_dir, a_run(), ["n1"])
    for phase in ("inspect", "probe", "inspect"):
        ledger.record("n1", phase, "done")
    assert list(ledger.hosts["n1"].phases) == ["probe", "inspect"]


def test_a_host_nobody_asked_for_cannot_be_recorded(run_dir: Path) -> None:
    ledger = Ledger.create(run_dir, a_run(), ["n1"])
    with pytest.raises(KeyError):
        ledger.record("n9", "inspect", "done")


def test_describe_close_snapshot_and_open(run_dir: Path) -> None:
    ledger = Ledger.create(run_dir, a_run(), ["n1"])
    ledger.describe(level="quick", workload="vit-g", simulated=True)
    ledger.describe(level="standard")
    assert ledger.snapshot(ended_at="later").ended_at == "later"
    assert on_disk(run_dir).ended_at == ""
    ledger.close(ended_at="2026-11-30T11:00:00+00:00")
    again = Ledger.open(run_dir)
    assert again.snapshot() == ledger.snapshot() == on_disk(run_dir)
    assert (again.snapshot().level, again.snapshot().workload, again.snapshot().simulated) == (
        "standard",
        "vit-g",
        True,
    )


def test_a_full_disk_keeps_the_old_ledger_and_says_so(run_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = Ledger.create(run_dir, a_run(), ["n1"])
    before = (run_dir / "run.json").read_bytes()

    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(DiskError, match="the disk is full") as caught:
        ledger.record("n1", "inspect", "done")
    assert caught.value.hint
    assert caught.value.exit_code is ExitCode.USAGE
    assert (run_dir / "run.json").read_bytes() == before
    assert [path.name for path in run_dir.iterdir()] == ["run.json"]


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    with pytest.raises(DiskError, match=r"cannot write .*run\.json") as caught:
        Ledger.create(blocked, a_run(), ["n1"])
    assert "-o" in caught.value.hint


def test_open_refuses_what_is_no_ledger(run_dir: Path) -> None:
    with pytest.raises(NodeprepError, match="cannot read"):
        Ledger.open(run_dir)
    (run_dir / "run.json").write_text('{"schema": "nodeprep.run/1", "id": 7}')
    with pytest.raises(DocumentError, match=r"not a nodeprep\.run/1 document"):
        Ledger.open(run_dir)
