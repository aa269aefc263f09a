"""Applies that change nothing, or are broken off: which restore point counts afterwards, and what is said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import bios_trees
import httpx
import pytest
from bios_bench import TARGET, Bench

from nodeprep.fleet.disk import DiskError
from nodeprep.workflows import bios_work
from nodeprep.workflows.bios_restore import RestoreStore
from nodeprep.workflows.home import Home


@pytest.fixture(autouse=True)
def _fast_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.fsync", lambda _: None)


def answering(status: int) -> Any:
    """A BMC that answers every write of settings so."""

    def script(method: str, path: str) -> httpx.Response | None:
        wrote = method in ("PATCH", "PUT") and "/Bios" in path
        return httpx.Response(status, json={"error": {"message": "no"}}) if wrote else None

    return script


def last(home: Path) -> Any:
    return RestoreStore(Home(home), TARGET, "S1").last()


@pytest.mark.parametrize("status", [400, 403])
def test_what_is_refused_leaves_the_earlier_restore_point_in_force(status: int, tmp_path: Path) -> None:
    bench = Bench(bios_trees.small(), tmp_path)
    before = bench.current
    first = bench.apply("iommu=disabled")
    bench.script = answering(status)
    refused = bench.apply("pcie_link_gen=3")
    bench.script = None
    assert (refused.state, refused.resets) == ("failed", 0)
    assert (refused.restore_file, refused.restore_point) == ("", {})
    assert last(tmp_path)[0] == Path(first.restore_file)
    bench.bmc.state.settings.current["AssetTag"] = "rack 9"
    bench.rollback()
    assert bench.current == {**before, "AssetTag": "rack 9"}


@pytest.mark.parametrize("fault", ["licence", "lockdown"])
def test_what_is_refused_first_of_all_leaves_nothing_to_take_back(fault: str, tmp_path: Path) -> None:
    bench = Bench(bios_trees.small(), tmp_path, faults=(fault,))
    done = bench.apply("iommu=disabled")
    assert (done.state, done.restore_file, last(tmp_path)) == ("failed", "", None)
    kept = json.loads(Path(bench.said[0].removeprefix("restore point: ")).read_text())
    assert (kept["finished"], kept["planned"]) == (True, {})
    assert kept["after"] == kept["values"]


def test_a_refusal_after_an_unfinished_run_leaves_that_run_s_values(tmp_path: Path) -> None:
    bench = Bench(bios_trees.small(), tmp_path)
    first = bench.apply("iommu=disabled", reset=False)
    bench.script = answering(403)
    assert bench.apply("pcie_link_gen=3", reset=False).restore_file == ""
    path, point = last(tmp_path)
    assert (path, point.finished) == (Path(first.restore_file), False)
    assert point.planned == {"IommuSupport": "Disabled"}


@pytest.mark.parametrize("status", [500, 503])
def test_a_fault_of_the_bmc_is_no_refusal(status: int, tmp_path: Path) -> None:
    bench = Bench(bios_trees.small(), tmp_path, script=answering(status))
    done = bench.apply("iommu=disabled")
    assert done.state == "failed"
    path, point = last(tmp_path)
    assert (str(path), point.finished) == (done.restore_file, False)
    assert point.planned == {"IommuSupport": "Disabled"}


def test_a_refusal_after_a_lost_answer_is_none(tmp_path: Path) -> None:
    bench = Bench(bios_trees.small(), tmp_path)
    sent: list[str] = []

    def script(method: str, path: str) -> httpx.Response | None:
        if method != "PATCH":
            return None
        sent.append(path)
        if len(sent) == 1:
            raise httpx.ReadError("gone")
        return httpx.Response(403, json={"error": {"message": "no"}})

    bench.script = script
    done = bench.apply("iommu=disabled")
    assert len(sent) > 1
    assert done.state == "failed"
    assert last(tmp_path)[1].finished is False


def test_a_full_disk_after_staging_names_the_way_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(bios_trees.small(), tmp_path)
    before = bench.current
    keep = RestoreStore.write
    monkeypatch.setattr(RestoreStore, "write", lambda *_: _full())
    with pytest.raises(DiskError) as early:
        bench.apply("iommu=disabled")
    assert "rollback" not in early.value.hint
    monkeypatch.setattr(
        RestoreStore,
        "write",
        lambda store, path, point: _full() if point.reset_at else keep(store, path, point),
    )
    with pytest.raises(DiskError) as late:
        bench.apply("iommu=disabled")
    assert bench.waiting == {"IommuSupport": "Disabled"}
    assert "`nodeprep rollback`" in late.value.hint
    assert "nodeprep bios rollback --bmc" in late.value.hint
    monkeypatch.setattr(RestoreStore, "write", keep)
    bench.rollback(reset=False)
    assert (bench.current, bench.waiting) == (before, {})


def _full() -> None:
    raise DiskError("cannot write: the disk is full", hint="free space")


def test_a_deadline_that_is_over_says_what_to_do(tmp_path: Path) -> None:
    bench = Bench(bios_trees.small(), tmp_path, faults=("post_hangs",))
    done = bench.apply("iommu=disabled", deadline_s=600.0)
    assert "the time for it is over" in done.error
    assert "console" in done.hint
    assert "nodeprep bios rollback" in done.hint
    assert bios_work.BMC_ONLY not in done.notes
