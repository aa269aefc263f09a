"""BIOS settings brought into effect, and back, on small simulated BMCs of each kind."""

from __future__ import annotations

import json
import stat
from collections.abc import Callable
from pathlib import Path

import bios_trees
import pytest
from bios_bench import TARGET, Bench, Killed

from nodeprep.bmc.failures import BmcUnreachable
from nodeprep.errors import Inconclusive, UsageError
from nodeprep.sim.bmc import Dump
from nodeprep.workflows.bios_restore import RestoreStore, has_restore_points
from nodeprep.workflows.home import Home

WANTED = ("iommu=disabled", "pcie_link_gen=3")
# Disabling the IOMMU switches SR-IOV off by itself.
CHANGED = {
    "IommuSupport": "Disabled",
    "SriovGlobalEnable": "Disabled",
    "PciSlot1LinkSpeed": "Gen3",
    "PciSlot2LinkSpeed": "Gen3",
}
MAKERS = pytest.mark.parametrize(
    "dump", [bios_trees.dell, bios_trees.hpe, bios_trees.lenovo, bios_trees.ami, bios_trees.small]
)
MakeDump = Callable[..., Dump]


@pytest.fixture(autouse=True)
def _fast_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    # Hundreds of runs: power cuts of the controller are not what is judged here.
    monkeypatch.setattr("os.fsync", lambda _: None)


@MAKERS
def test_apply_brings_into_effect_and_rollback_leaves_the_tree_as_it_was(
    dump: MakeDump, tmp_path: Path
) -> None:
    bench = Bench(dump(), tmp_path)
    before = bench.current
    done = bench.apply(*WANTED)
    assert (done.state, done.error, done.resets) == ("applied", "", 1)
    assert {one.result for one in done.outcomes} == {"taken"}
    assert bench.current == {**before, **CHANGED}
    assert done.after is not None
    assert done.after.in_desired_state
    undone = bench.rollback()
    assert (undone.state, undone.undone) == ("applied", True)
    assert bench.current == before
    assert bench.waiting == {}
    assert bench.bmc.state.sessions.ids() == []


@MAKERS
def test_a_second_apply_writes_nothing_and_resets_nothing(dump: MakeDump, tmp_path: Path) -> None:
    bench = Bench(dump(), tmp_path)
    bench.apply(*WANTED)
    resets = list(bench.resets)
    again = bench.apply(*WANTED)
    assert again.state == "unchanged"
    assert bench.resets == resets
    assert bench.patches() == []


def test_the_restore_point_is_written_before_the_first_change_for_its_owner_only(tmp_path: Path) -> None:
    bench = Bench(bios_trees.dell(), tmp_path, faults=("licence",))
    done = bench.apply("iommu=disabled")
    path = Path(bench.said[0].removeprefix("restore point: "))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert json.loads(path.read_text())["values"]["IommuSupport"] == "Enabled"
    assert "staging" in bench.said[1]
    assert (done.restore_file, done.restore_point) == ("", {}), "nothing was changed"


def test_no_reset_leaves_the_values_staged_and_a_later_run_finishes(tmp_path: Path) -> None:
    bench = Bench(bios_trees.dell(), tmp_path)
    staged = bench.apply("iommu=disabled", reset=False)
    assert (staged.state, bench.resets) == ("staged", [])
    assert bench.waiting == {"IommuSupport": "Disabled"}
    done = bench.apply("iommu=disabled")
    assert done.state == "applied"
    assert bench.patches() == []
    assert len(bench.bmc.state.jobs.all()) == 1


def test_rollback_of_what_is_only_staged_needs_no_reset(tmp_path: Path) -> None:
    bench = Bench(bios_trees.hpe(), tmp_path)
    bench.apply("iommu=disabled", reset=False)
    undone = bench.rollback(reset=False)
    assert undone.state in ("applied", "unchanged")
    assert (bench.waiting, bench.resets) == ({}, [])


def test_rollback_deletes_nodeprep_s_own_waiting_job_and_says_so(tmp_path: Path) -> None:
    bench = Bench(bios_trees.dell(), tmp_path)
    bench.apply("iommu=disabled", reset=False)
    undone = bench.rollback(reset=False)
    assert any("own job" in note for note in undone.notes)
    assert bench.bmc.state.jobs.all() == []
    assert bench.waiting == {}


def test_settings_that_unlock_others_are_written_first_each_with_a_reset(tmp_path: Path) -> None:
    bench = Bench(bios_trees.small(), tmp_path)
    before = bench.current
    done = bench.apply("aspm=disabled", "xhci_handoff=disabled")
    assert (done.state, done.resets) == ("applied", 2)
    assert [list(body["Attributes"]) for body in bench.patches()] == [["XhciHandOff"], ["PcieAspmL1"]]
    bench.rollback()
    assert bench.current == before


def test_a_graceful_shutdown_comes_first_and_force_after_its_time(tmp_path: Path) -> None:
    bench = Bench(bios_trees.small(), tmp_path, faults=("graceful_ignored",))
    done = bench.apply("iommu=disabled", graceful_s=30.0)
    assert done.state == "applied"
    assert bench.resets == ["GracefulShutdown", "ForceOff", "On"]
    assert any("by force" in note for note in done.notes)


def test_a_host_that_is_off_is_switched_on(tmp_path: Path) -> None:
    bench = Bench(bios_trees.small(system={"PowerState": "Off"}), tmp_path)
    assert bench.apply("iommu=disabled").state == "applied"
    assert bench.resets == ["On"]


def test_a_host_that_cannot_be_switched_on_is_restarted_and_not_switched_off(tmp_path: Path) -> None:
    bench = Bench(bios_trees.small(types=("ForceRestart", "ForceOff")), tmp_path)
    assert bench.apply("iommu=disabled").state == "applied"
    assert bench.resets == ["ForceRestart"]


@pytest.mark.parametrize("fault", ["on_lost", "off_slow", "not_ready", "drop", "busy", "post_slow"])
def test_what_a_host_or_bmc_does_on_the_way_is_waited_out(fault: str, tmp_path: Path) -> None:
    bench = Bench(bios_trees.hpe(), tmp_path, faults=(fault,))
    assert bench.apply(*WANTED).state == "applied"


def test_post_that_never_ends_is_given_up_in_time(tmp_path: Path) -> None:
    bench = Bench(bios_trees.small(), tmp_path, faults=("post_hangs",))
    begun = bench.clock.time
    done = bench.apply("iommu=disabled", deadline_s=600.0)
    assert done.state == "failed"
    assert "the time for it is over" in done.error
    assert bench.clock.time - begun < 800
    assert [one.result for one in done.outcomes] == ["staged"]


def test_resets_that_are_refused_leave_the_values_staged(tmp_path: Path) -> None:
    bench = Bench(bios_trees.small(), tmp_path, faults=("reset_refused",))
    done = bench.apply("iommu=disabled")
    assert (done.state, done.resets) == ("failed", 0)
    assert [one.result for one in done.outcomes] == ["staged"]


def test_the_setup_password_is_sent_only_when_it_is_asked_for(tmp_path: Path) -> None:
    bench = Bench(bios_trees.hpe(), tmp_path, faults=("bios_password",))
    assert bench.apply("iommu=disabled", bios_password="simulated").state == "applied"
    sent = [name for headers in bench.headers for name in headers if "restful" in name]
    assert len(sent) == 1
    other = Bench(bios_trees.hpe(), tmp_path / "other")
    other.apply("iommu=disabled", bios_password="simulated")
    assert not [name for headers in other.headers for name in headers if "restful" in name]


def test_a_restore_point_of_another_machine_is_refused(tmp_path: Path) -> None:
    bench = Bench(bios_trees.small(), tmp_path)
    path = Path(bench.apply("iommu=disabled").restore_file)
    other = Bench(bios_trees.small(system={"SerialNumber": "S2"}), tmp_path / "other")
    with pytest.raises(UsageError, match="serial number S1"):
        other.rollback(path)
    assert other.patches() == []


def test_rollback_without_a_restore_point_changes_nothing(tmp_path: Path) -> None:
    bench = Bench(bios_trees.small(), tmp_path)
    with pytest.raises(UsageError, match="no restore point"):
        bench.rollback()


def test_a_second_rollback_says_that_the_last_one_was_taken_back_and_when(tmp_path: Path) -> None:
    bench = Bench(bios_trees.small(), tmp_path)
    bench.apply("iommu=disabled")
    path = bench.rollback().restore_file
    with pytest.raises(UsageError, match=rf"taken back already, at 20\d\d-.*: {path}") as caught:
        bench.rollback()
    assert "nothing left" in caught.value.hint
    assert not has_restore_points(Home(tmp_path))
    bench.apply("iommu=disabled")
    assert bench.rollback().state == "applied"


def test_a_bmc_that_is_silent_or_unreadable_changes_nothing(tmp_path: Path) -> None:
    with pytest.raises(BmcUnreachable):
        Bench(bios_trees.small(), tmp_path, faults=("hang",)).apply("iommu=disabled")
    with pytest.raises(Inconclusive):
        Bench(bios_trees.small(), tmp_path, faults=("malformed",)).apply("iommu=disabled")
    assert not (tmp_path / "bios").exists()


def test_what_others_have_staged_is_told_before_the_reset_that_applies_it(tmp_path: Path) -> None:
    bench = Bench(bios_trees.hpe(), tmp_path)
    bench.bmc.state.settings.stage({"AssetTag": "rack 9"}, 1)
    assert any("AssetTag=rack 9" in note for note in bench.plan("iommu=disabled").notes)


def test_two_runs_do_not_work_on_the_same_bmc_at_a_time(tmp_path: Path) -> None:
    bench = Bench(bios_trees.small(), tmp_path)
    store = RestoreStore(Home(tmp_path), TARGET, "S1")
    with store.locked(), pytest.raises(UsageError, match="another nodeprep"):
        bench.apply("iommu=disabled")
    assert bench.patches() == []


# A kill at any request


@pytest.mark.parametrize("answered", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("dump", [bios_trees.dell, bios_trees.hpe, bios_trees.lenovo, bios_trees.ami])
def test_a_kill_at_any_request_leaves_what_the_next_run_finishes(
    dump: MakeDump, answered: bool, tmp_path: Path
) -> None:
    made = dump()
    for number in range(1, 500):
        bench = Bench(made, tmp_path / str(number), post_s=20.0)
        before = bench.current
        bench.kill_at, bench.answered = number, answered
        try:
            bench.apply(*WANTED)
        except Killed:
            where = (number, bench.requests[-1])
        else:
            # All requests were tried.
            assert number > 40
            return
        bench.kill_at = 0
        bench.clock.wait(3.0)
        done = bench.apply(*WANTED)
        assert done.state in ("applied", "unchanged"), (where, done.error)
        assert bench.current == {**before, **CHANGED}, where
        assert bench.bmc.state.host.power == "On", where
        undone = bench.rollback()
        assert undone.state in ("applied", "unchanged"), (where, undone.error)
        assert (bench.current, bench.waiting) == (before, {}), where
    pytest.fail("it never ended")


@pytest.mark.parametrize("dump", [bios_trees.dell, bios_trees.ami])
def test_a_kill_within_a_rollback_is_finished_by_the_next_one(dump: MakeDump, tmp_path: Path) -> None:
    made = dump()
    for number in range(1, 500, 3):
        bench = Bench(made, tmp_path / str(number), post_s=20.0)
        before = bench.current
        bench.apply(*WANTED)
        bench.kill_at = number
        try:
            bench.rollback()
        except Killed:
            where = (number, bench.requests[-1])
        else:
            return
        bench.kill_at = 0
        undone = bench.rollback()
        assert undone.state in ("applied", "unchanged"), (where, undone.error)
        assert (bench.current, bench.waiting) == (before, {}), where
        assert bench.bmc.state.host.power == "On", where
    pytest.fail("it never ended")
