"""Taking everything back, however often arguments were made permanent."""

from __future__ import annotations

from pathlib import Path

import pytest
from trial_node import EDIT, OLD, Node

from nodeprep.node import trial_end, trial_state
from nodeprep.node.kernel_cmdline import Edit

MORE = Edit(present=("nosmt",), absent=("console=tty0",))


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def test_back_to_before_the_first_change_and_done_after_the_reboot(node: Node) -> None:
    node.apply()
    node.boot()
    node.apply(MORE, "trial-2")
    node.boot()
    assert node.permanent == MORE.apply(EDIT.apply(OLD))
    restored = node.restore()
    assert (restored["changed"], restored["failed"], restored["finished"]) == (True, False, False)
    assert restored["needs_reboot"] is True
    assert restored["diff"]["after"].split() == OLD.split()
    assert node.permanent == OLD
    again = node.restore()
    assert (again["changed"], again["needs_reboot"]) == (False, True)
    assert node.boot() == OLD
    last = node.restore()
    assert (last["changed"], last["needs_reboot"], last["finished"]) == (False, False, True)
    assert trial_state.restore_point(node.root) is None
    before = node.files()
    assert node.restore()["changed"] is False
    assert node.files() == before


def test_a_commit_whose_boot_still_runs_needs_a_reboot(node: Node) -> None:
    node.apply()
    restored = node.restore()
    assert (restored["needs_reboot"], restored["booted"]) == (True, True)
    node.boot()
    assert node.restore()["finished"] is True


def test_a_trial_under_way_is_given_up_first(node: Node) -> None:
    node.apply()
    node.boot()
    node.stage(MORE, "trial-2")
    node.arm()
    assert node.restore()["changed"] is True
    assert node.clean
    assert node.permanent == OLD
    assert node.boot() == OLD


@pytest.mark.parametrize("step", ["restore", "abandon"])
def test_a_commit_that_a_power_cut_broke_off_and_its_boot_both_go(
    node: Node, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """The reset came after grub.cfg was complete: the arguments run without a marker to tell them by."""

    def power_cut(*_: object) -> None:
        raise KeyboardInterrupt

    node.try_out()
    node.judge()
    monkeypatch.setattr(trial_end, "finish", power_cut)
    with pytest.raises(KeyboardInterrupt):
        node.commit()
    monkeypatch.undo()
    assert node.boot() == EDIT.apply(OLD)
    done = getattr(node, step)()
    assert (done["changed"], done["needs_reboot"], done["finished"]) == (True, True, False)
    assert node.permanent == OLD
    assert node.boot() == OLD
    assert getattr(node, step)()["needs_reboot"] is False


def test_without_a_change_there_is_nothing_to_restore(node: Node) -> None:
    before = node.files()
    restored = node.restore()
    assert (restored["changed"], restored["failed"], restored["finished"]) == (False, False, True)
    assert node.files() == before
    node.try_out()
    restored = node.restore()
    assert (restored["changed"], restored["needs_reboot"], restored["finished"]) == (True, True, False)
    assert node.boot() == OLD


def test_a_boot_loader_that_adds_words_of_its_own_does_not_ask_for_reboots_for_ever(node: Node) -> None:
    node.apply()
    node.restore()
    node.boot()
    node.write("/proc/cmdline", f"BOOT_IMAGE=/vmlinuz {OLD} vt.handoff=7")
    assert node.restore()["finished"] is True


def test_a_new_change_after_a_restore_has_a_restore_point_of_its_own(node: Node) -> None:
    node.apply()
    node.restore()
    node.boot()
    node.loader.install(OLD + " audit=0")
    node.boot()
    assert node.apply(trial_id="trial-2") == "committed"
    node.restore()
    assert node.permanent == OLD + " audit=0"


def test_what_does_not_go_back_is_named(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    node.apply(MORE)
    node.boot()
    monkeypatch.setattr(node.loader, "restore", lambda _snapshot, _edits: None)
    restored = node.restore()
    assert restored["failed"]
    assert "nosmt is still there" in restored["msg"]
    assert "console=tty0 is not back" in restored["msg"]
    assert trial_state.restore_point(node.root) is not None


def test_no_folder_of_nodeprep_is_left_empty(node: Node) -> None:
    before = sorted(path for path in Path(node.root).rglob("*") if path.is_dir())
    node.apply()
    node.restore()
    node.boot()
    assert node.restore()["finished"] is True
    left = {path for path in Path(node.root).rglob("*") if path.is_dir()} - set(before)
    assert [path.name for path in left] == ["nodeprep"]
    assert [path.name for path in next(iter(left)).iterdir()] == ["trial_last.json"]


def test_a_damaged_restore_point_is_an_error(node: Node) -> None:
    node.apply()
    node.write(trial_state.RESTORE, '{"schema": "another"}')
    restored = node.restore()
    assert restored["failed"]
    assert f"{trial_state.RESTORE} is damaged" in restored["msg"]
    assert node.permanent == EDIT.apply(OLD)
