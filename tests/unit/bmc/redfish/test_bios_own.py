"""What an earlier run of nodeprep left on a BMC is known as its own, and what others left is not."""

from __future__ import annotations

from pathlib import Path

import bios_trees
import pytest
from bios_bench import TARGET, Bench, Killed

from nodeprep.bmc.bios import parse_settings
from nodeprep.sim.bmc import Dump
from nodeprep.workflows import bios


@pytest.fixture(autouse=True)
def _fast_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    # Power cuts of the controller are not what is judged here.
    monkeypatch.setattr("os.fsync", lambda _: None)


def killed_at(method: str, dump: Dump, home: Path, part: str = "") -> Bench:
    """A bench whose run ended when the BMC had carried out its first such request, and not answered it."""
    whole = Bench(dump, home / "whole")
    whole.apply("iommu=disabled")
    first = next(
        number for number, (asked, path) in enumerate(whole.requests, 1) if asked == method and part in path
    )
    bench = Bench(dump, home)
    bench.kill_at, bench.answered = first, True
    with pytest.raises(Killed):
        bench.apply("iommu=disabled")
    bench.kill_at = 0
    bench.clock.wait(5.0)
    return bench


@pytest.mark.parametrize(("method", "part"), [("PATCH", ""), ("POST", "ComputerSystem.Reset")])
def test_rollback_without_reset_deletes_the_job_of_a_killed_run(
    method: str, part: str, tmp_path: Path
) -> None:
    bench = killed_at(method, bios_trees.dell(), tmp_path, part)
    done = bench.rollback(reset=False)
    assert done.state in ("unchanged", "applied"), done.error
    assert any("own job" in note for note in done.notes)
    assert (bench.bmc.state.jobs.all(), bench.waiting) == ([], {})
    assert bench.current["IommuSupport"] == "Enabled"


def test_a_job_that_holds_more_than_the_killed_run_wrote_is_left_alone(tmp_path: Path) -> None:
    bench = killed_at("PATCH", bios_trees.dell(), tmp_path)
    bench.bmc.state.settings.stage({"AssetTag": "rack 9"}, 1)
    done = bench.rollback(reset=False)
    assert done.state == "failed"
    assert "deletes no job of others" in done.error
    assert len(bench.bmc.state.jobs.all()) == 1


def test_an_apply_of_something_else_names_the_own_job_and_the_way_back(tmp_path: Path) -> None:
    bench = killed_at("PATCH", bios_trees.dell(), tmp_path)
    done = bench.apply("pcie_link_gen=3")
    assert done.state == "failed"
    assert "of an earlier run of nodeprep" in done.error
    assert "bios rollback" in done.error
    assert "of others" not in done.error


def test_a_plan_tells_what_is_staged_by_nodeprep_from_what_others_staged(tmp_path: Path) -> None:
    bench = killed_at("PATCH", bios_trees.hpe(), tmp_path)
    bench.bmc.state.settings.stage({"AssetTag": "rack 9"}, 1)
    wanted = parse_settings(("pcie_link_gen=3",))
    notes = bios.plan(TARGET, wanted, bench.connect, bench.home).notes
    assert any("by an earlier run of nodeprep" in note and "IommuSupport=Disabled" in note for note in notes)
    assert [note for note in notes if "by others" in note and "AssetTag" in note]
    assert not [note for note in notes if "by others" in note and "IommuSupport" in note]
