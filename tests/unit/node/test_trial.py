"""A trial boot from stage to commit, and every way to end it."""

from __future__ import annotations

import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from trial_node import EDIT, OLD, Node

from nodeprep.node import trial_deadman, trial_end, trial_space, trial_state
from nodeprep.node.kernel_cmdline import Edit

NEW = EDIT.apply(OLD)


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def fewer_cpus(node: Node) -> None:
    node.write("/sys/devices/system/cpu/online", "0\n")


BAD = Edit(present=("maxcpus=1",))


# ---- the good way ------------------------------------------------------------------------------------


def test_arguments_become_permanent_after_one_reboot(node: Node) -> None:
    staged = node.stage()
    assert (staged["changed"], staged["failed"], staged["phase"]) == (True, False, "staged")
    assert staged["diff"]["after"].split() == NEW.split()
    assert node.permanent == OLD
    assert not node.loader.armed()

    armed = node.arm()
    assert (armed["changed"], armed["needs_reboot"], node.loader.armed()) == (True, True, True)
    assert node.permanent == OLD

    running = node.boot()
    assert running.split() == [*NEW.split(), "panic=30", "nodeprep.trial=trial-1"]

    judged = node.judge()
    assert (judged["verdict"], judged["booted"], judged["findings"]) == ("good", True, [])
    assert node.permanent == OLD

    committed = node.commit()
    assert (committed["failed"], committed["changed"]) == (False, True)
    assert committed["diff"]["before"].split() == OLD.split()
    assert node.permanent == NEW
    assert node.clean
    outcome = trial_state.last(node.root)
    assert outcome is not None
    assert (outcome.id, outcome.outcome) == ("trial-1", "committed")
    assert len(node.boots) == 2


def test_a_second_run_changes_nothing_in_the_trial_boot_and_after_another_one(node: Node) -> None:
    assert node.apply() == "committed"
    before = node.files()
    assert node.apply(trial_id="trial-2") == "as wanted"
    assert node.files() == before
    node.boot()
    before = node.files()
    assert node.apply(trial_id="trial-3") == "as wanted"
    assert node.files() == before


def test_removing_panic_is_as_wanted_in_the_boot_that_was_given_it_for_safety(node: Node) -> None:
    node.loader.install(OLD + " panic=5")
    node.boot()
    assert node.apply(Edit(absent=("panic",))) == "committed"
    assert node.apply(Edit(absent=("panic",)), "trial-2") == "as wanted"
    assert node.permanent == OLD


def test_permanent_arguments_that_never_booted_are_tried_too(node: Node) -> None:
    node.loader.install(NEW)
    staged = node.stage()
    assert staged["phase"] == "staged"
    assert any("no boot with them was judged" in note for note in staged["notes"])
    node.abandon()
    assert node.apply(trial_id="trial-2") == "committed"
    assert node.permanent == NEW


def test_state_and_restore_point_are_for_root_only(node: Node) -> None:
    node.stage()
    for path in (trial_state.STATE, trial_state.RESTORE):
        assert stat.S_IMODE(Path(node.root + path).stat().st_mode) == 0o600, path


def test_check_mode_changes_nothing_anywhere(node: Node) -> None:
    before = node.files()
    checked = node.stage(check_mode=True)
    assert (checked["changed"], checked["diff"]["after"].split()) == (True, NEW.split())
    assert node.files() == before
    node.stage()
    before = node.files()
    assert node.arm(check_mode=True)["changed"] is True
    assert node.abandon(check_mode=True)["changed"] is True
    assert node.files() == before
    node.arm()
    node.boot()
    before = node.files()
    assert node.judge(check_mode=True)["verdict"] == "good"
    assert node.files() == before
    node.judge()
    before = node.files()
    assert node.commit(check_mode=True)["changed"] is True
    assert node.files() == before
    node.commit()
    before = node.files()
    restored = node.restore(check_mode=True)
    assert (restored["changed"], restored["diff"]["after"].split()) == (True, OLD.split())
    assert node.files() == before


# ---- going on with what is under way -----------------------------------------------------------------


@pytest.mark.parametrize("steps", ["stage", "stage arm", "stage arm boot", "stage arm boot judge"])
def test_the_same_edit_is_gone_on_with_whoever_began(node: Node, steps: str) -> None:
    for step in steps.split():
        getattr(node, step)()
    again = node.stage(trial_id="trial-2")
    assert (again["changed"], again["trial_id"]) == (False, "trial-1")
    assert node.apply(trial_id="trial-2") == "committed"
    assert len(node.boots) == 2


def test_another_edit_ends_the_trial_of_the_first(node: Node) -> None:
    node.stage()
    node.arm()
    other = Edit(present=("nosmt",))
    staged = node.stage(other, "trial-2")
    assert (staged["trial_id"], staged["phase"]) == ("trial-2", "staged")
    assert not node.loader.armed()
    outcome = trial_state.last(node.root)
    assert outcome is not None
    assert (outcome.id, outcome.outcome) == ("trial-1", "abandoned")
    assert node.apply(other, "trial-2") == "committed"
    assert node.permanent == other.apply(OLD)


def test_an_edit_that_is_as_wanted_ends_the_trial_of_another_without_a_reboot(node: Node) -> None:
    node.stage()
    node.arm()
    staged = node.stage(Edit(absent=("nosmt",)), "trial-2")
    assert (staged["changed"], staged["phase"]) == (True, "")
    assert node.clean
    assert node.boot() == OLD


def test_an_abandoned_trial_that_still_runs_takes_a_boot_to_be_rid_of(node: Node) -> None:
    node.try_out()
    node.abandon()
    assert node.apply(Edit(absent=("nosmt",)), "trial-2") == "committed"
    assert node.permanent == OLD
    assert node.boot() == OLD


def test_a_trial_boot_does_not_vouch_for_itself(node: Node) -> None:
    """From a bad trial boot another edit is tried: what the first one lost is still missed."""
    node.effects["maxcpus=1"] = fewer_cpus
    node.try_out(BAD)
    worse = Edit(present=("maxcpus=1", "nosmt"))
    node.try_out(worse, "trial-2")
    judged = node.judge()
    assert judged["verdict"] == "bad"
    assert {"what": "cpus", "before": "64 online", "now": "1 online"} in judged["findings"]


def test_after_an_abandoned_trial_boot_the_witness_is_still_the_one_before_it(node: Node) -> None:
    node.effects["maxcpus=1"] = fewer_cpus
    node.try_out(BAD)
    assert node.abandon()["needs_reboot"] is True
    node.stage(EDIT, "trial-2")
    staged = trial_state.required(node.root)
    assert staged.witness["cpus"] == {"state": "ok", "value": 64}


def test_a_trial_boot_of_which_nothing_is_known_has_to_end_first(node: Node) -> None:
    node.try_out()
    node.abandon()
    Path(node.root + trial_state.LAST).unlink()
    staged = node.stage(BAD, "trial-2")
    assert staged["failed"]
    assert "is not under way any more" in staged["msg"]
    assert node.clean


def test_a_good_boot_that_nobody_made_permanent_is_tried_once_more(node: Node) -> None:
    node.try_out()
    node.judge()
    node.boot()
    staged = node.stage(trial_id="trial-2")
    assert (staged["changed"], staged["trial_id"]) == (True, "trial-2")
    assert node.apply(trial_id="trial-3") == "committed"


def test_an_entry_that_somebody_removed_is_staged_anew(node: Node) -> None:
    node.stage()
    node.loader.unstage()
    assert node.arm()["failed"]
    assert node.stage(trial_id="trial-2")["trial_id"] == "trial-2"
    assert node.apply(trial_id="trial-3") == "committed"


def test_permanent_arguments_that_changed_under_a_staged_trial_are_staged_anew(node: Node) -> None:
    node.stage()
    node.loader.install(OLD + " nosmt")
    assert "have changed since" in node.arm()["msg"]
    assert node.stage(trial_id="trial-2")["trial_id"] == "trial-2"


# ---- refusals: nothing is left behind ----------------------------------------------------------------


def no_space(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial_space, "MIN_FREE_BYTES", 1 << 62)


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda node, _: setattr(node.loader, "obstacle", "/boot is on LVM"), "/boot is on LVM"),
        (lambda node, _: setattr(node.loader, "refuses", "stage"), "no room for an entry"),
        (lambda _, monkeypatch: no_space(monkeypatch), "KiB free"),
        (lambda node, _: Path(node.root, "dev/kmsg").unlink(), "kernel log is unreadable"),
        (lambda node, _: Path(node.root, "proc/meminfo").write_text(""), "memory_bytes: "),
    ],
)
def test_a_trial_that_would_not_be_safe_is_refused(
    node: Node, monkeypatch: pytest.MonkeyPatch, spoil: Any, words: str
) -> None:
    spoil(node, monkeypatch)
    staged = node.stage()
    assert (staged["failed"], staged["changed"]) == (True, False)
    assert words in staged["msg"]
    assert node.clean
    assert node.permanent == OLD
    assert trial_state.restore_point(node.root) is None


def everything(node: Node) -> tuple[dict[str, str], list[str]]:
    """Files with their content, and all names."""
    return node.files(), sorted(str(path) for path in Path(node.root).rglob("*"))


@pytest.mark.parametrize("ended", ["", "committed", "abandoned", "restored"])
def test_a_refused_stage_leaves_the_node_as_it_was(node: Node, ended: str) -> None:
    if ended == "abandoned":
        node.stage()
        node.abandon()
    elif ended:
        node.apply()
        if ended == "restored":
            node.restore()
        node.boot()
    before = everything(node)
    node.loader.refuses = "stage"
    assert node.stage(BAD, "trial-2")["failed"]
    assert everything(node) == before


def test_a_disk_that_filled_up_since_staging_refuses_the_commit(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    node.try_out()
    node.judge()
    no_space(monkeypatch)
    before = node.files()
    committed = node.commit()
    assert committed["failed"]
    assert "KiB free" in committed["msg"]
    assert node.files() == before
    monkeypatch.undo()
    assert not node.commit()["failed"]


@pytest.mark.parametrize(
    "more", [{"trial_id": "a b"}, {"trial_id": ""}, {"confirm_s": 5}, {"confirm_s": 9999}]
)
def test_an_id_or_a_deadline_that_cannot_be_is_refused(node: Node, more: dict[str, Any]) -> None:
    before = node.files()
    assert node.stage(**more)["failed"]
    assert node.files() == before


@pytest.mark.parametrize(
    "word", ["", "a b", "--", 'a="b', "a\n", "a\x07", "nodeprep.trial", "nodeprep.trial=mine"]
)
def test_what_is_no_argument_is_refused(node: Node, word: str) -> None:
    before = node.files()
    for edit in (Edit(present=(word,)), Edit(absent=(word,)), Edit(replace=(word,))):
        assert (
            "nodeprep.trial" in node.stage(edit)["msg"]
            or "is not one kernel argument" in node.stage(edit)["msg"]
        )
    assert node.files() == before


def test_a_command_line_that_the_kernel_would_cut_off_is_refused(node: Node) -> None:
    staged = node.stage(Edit(present=("memmap=" + "1" * 1900,)))
    assert "characters" in staged["msg"]
    assert node.clean


def test_a_restore_point_of_another_boot_loader_is_not_overwritten(node: Node) -> None:
    node.apply()
    point = trial_state.restore_point(node.root)
    assert point is not None
    trial_state.put(node.root, replace(point, loader="grubby"))
    assert "grubby" in node.stage(BAD, "trial-2")["msg"]


# ---- what must not become permanent ------------------------------------------------------------------


@pytest.mark.parametrize("steps", ["", "stage", "stage arm", "stage arm boot", "stage arm boot judge boot"])
def test_nothing_becomes_permanent_that_this_boot_was_not_judged_good_with(node: Node, steps: str) -> None:
    for step in steps.split():
        getattr(node, step)()
    assert node.commit()["failed"]
    assert node.permanent == OLD


def test_a_boot_that_went_bad_after_it_was_judged_is_not_made_permanent(node: Node) -> None:
    node.try_out()
    assert node.judge()["verdict"] == "good"
    fewer_cpus(node)
    committed = node.commit()
    assert (committed["failed"], committed["verdict"]) == (True, "bad")
    assert node.permanent == OLD
    node.hardware()
    assert node.commit()["failed"]


def test_permanent_arguments_that_changed_during_the_trial_are_left_alone(node: Node) -> None:
    node.try_out()
    node.judge()
    node.loader.install(OLD + " nosmt")
    assert "since the trial was staged" in node.commit()["msg"]
    assert node.permanent == OLD + " nosmt"


@pytest.mark.parametrize("fault", [{"refuses": "commit"}, {"garbles": " debug"}])
def test_a_commit_that_comes_out_wrong_is_taken_back(node: Node, fault: dict[str, str]) -> None:
    node.try_out()
    node.judge()
    for name, value in fault.items():
        setattr(node.loader, name, value)
    assert node.commit()["failed"]
    assert node.loader.everywhere == {OLD}
    point = trial_state.restore_point(node.root)
    assert point is not None
    assert point.commits == []
    node.loader.refuses = node.loader.garbles = ""
    assert node.apply() == "committed"


def test_a_commit_that_cannot_be_taken_back_says_so_and_can_be_abandoned_later(node: Node) -> None:
    node.try_out()
    node.judge()
    node.loader.garbles, node.loader.refuses = " debug", "restore"
    committed = node.commit()
    assert "could not be taken back" in committed["msg"]
    assert committed["phase"] == "committing"
    assert node.judge()["failed"]
    node.loader.garbles = node.loader.refuses = ""
    assert not node.abandon()["failed"]
    assert node.loader.everywhere == {OLD}
    assert node.clean


def test_the_countdown_stops_before_the_boot_loader_is_written(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []
    node.try_out()
    node.judge()
    monkeypatch.setattr(trial_deadman, "systemctl", lambda _root, *words: order.append(" ".join(words)))
    write = node.loader.commit

    def commit(edit: Edit) -> None:
        order.append("commit")
        write(edit)

    monkeypatch.setattr(node.loader, "commit", commit)
    node.commit()
    assert order[:2] == [f"stop {trial_deadman.UNIT}", "commit"]


def break_off_late(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """The power goes when a commit is complete but for its end."""

    def power_cut(*_: object) -> None:
        raise KeyboardInterrupt

    node.try_out()
    node.judge()
    with monkeypatch.context() as patch:
        patch.setattr(trial_end, "finish", power_cut)
        with pytest.raises(KeyboardInterrupt):
            node.commit()
    node.boot()


@pytest.mark.parametrize("step", ["stage", "commit"])
def test_a_commit_broken_off_late_is_completed_though_others_have_added_arguments(
    node: Node, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    break_off_late(node, monkeypatch)
    node.loader.install(NEW + " audit=0")
    node.boot()
    done = node.stage(Edit(present=("nosmt",)), "trial-2") if step == "stage" else node.commit()
    assert not done["failed"], done["msg"]
    assert node.loader.everywhere == {NEW + " audit=0"}
    outcome = trial_state.last(node.root)
    assert outcome is not None
    assert (outcome.id, outcome.outcome) == ("trial-1", "committed")


# ---- abandoning --------------------------------------------------------------------------------------


def test_abandoning_leaves_the_outcome_and_nothing_else(node: Node) -> None:
    node.stage()
    node.arm()
    abandoned = node.abandon(why="the operator said so")
    assert (abandoned["changed"], abandoned["needs_reboot"]) == (True, False)
    assert node.clean
    assert trial_state.restore_point(node.root) is None
    outcome = trial_state.last(node.root)
    assert outcome is not None
    assert (outcome.outcome, outcome.why) == ("abandoned", "the operator said so")
    assert node.boot() == OLD
    again = node.abandon()
    assert (again["changed"], again["failed"]) == (False, False)


def test_a_bad_boot_is_rolled_back_with_its_findings(node: Node) -> None:
    node.effects["maxcpus=1"] = fewer_cpus
    assert node.apply(BAD) == "rolled back"
    assert node.boots[-1] == OLD
    assert node.permanent == OLD
    assert node.clean
    outcome = trial_state.last(node.root)
    assert outcome is not None
    assert (outcome.outcome, outcome.why) == ("rolled back", "cpus: 64 online before, 1 online now")


def test_a_damaged_state_stops_staging_and_can_be_cleared(node: Node) -> None:
    node.stage()
    node.arm()
    node.write(trial_state.STATE, "{")
    assert "is damaged" in node.stage()["msg"]
    assert node.loader.armed()
    abandoned = node.abandon()
    assert not abandoned["failed"]
    assert "is damaged" in abandoned["notes"][0]
    assert node.clean
    assert node.apply(trial_id="trial-2") == "committed"


def test_arming_says_when_the_boot_loader_refuses(node: Node) -> None:
    node.stage()
    node.loader.refuses = "arm"
    armed = node.arm()
    assert (armed["failed"], armed["needs_reboot"]) == (True, False)
    node.loader.refuses = ""
    assert node.apply() == "committed"


# ---- what a controller learns that lost its connection -------------------------------------------------


def test_the_outcome_of_a_trial_that_ended_is_told_with_its_id(node: Node) -> None:
    for done in (node.judge(), node.abandon()):
        assert (done["outcome"], done["trial_id"]) == ("", "")
    node.try_out()
    assert node.judge()["outcome"] == ""
    assert node.commit()["outcome"] == "committed"
    for done in (node.judge(), node.abandon()):
        assert (done["outcome"], done["trial_id"], done["changed"]) == ("committed", "trial-1", False)
    node.boot()
    node.stage(BAD, "trial-2")
    abandoned = node.abandon()
    assert (abandoned["outcome"], abandoned["trial_id"]) == ("abandoned", "trial-2")
    node.effects["maxcpus=1"] = fewer_cpus
    node.try_out(BAD, "trial-3")
    node.judge()
    assert node.abandon()["outcome"] == "rolled back"
    judged = node.judge()
    assert (judged["failed"], judged["outcome"], judged["trial_id"]) == (True, "rolled back", "trial-3")


def test_abandoning_goes_through_where_the_last_outcome_is_damaged(node: Node) -> None:
    node.write(trial_state.LAST, "{")
    abandoned = node.abandon()
    assert (abandoned["failed"], abandoned["outcome"]) == (False, "")
    assert "is damaged" in abandoned["notes"][0]


def test_a_judgement_says_whether_the_dead_mans_unit_is_in_place(node: Node) -> None:
    node.try_out()
    assert node.judge()["deadman"] is True
    Path(node.root + trial_deadman.UNIT_FILE).unlink()
    assert node.judge()["deadman"] is False


# ---- facts -------------------------------------------------------------------------------------------


def told(node: Node) -> tuple[str, bool, str]:
    seen = trial_state.observe(node.root)
    assert seen["id"] == "trial-1"
    assert "nodeprep.trial=trial-1" in seen["cmdline"].split()
    return seen["phase"], seen["booted"], seen["outcome"]


def test_the_facts_follow_a_trial(node: Node) -> None:
    with pytest.raises(trial_state.NotSupported, match=r"^no trial boot is under way$"):
        trial_state.observe(node.root)
    node.stage()
    assert told(node) == ("staged", False, "")
    node.arm()
    assert told(node) == ("armed", False, "")
    node.boot()
    assert told(node) == ("armed", True, "")
    node.judge()
    assert told(node) == ("judged", True, "good")
    fewer_cpus(node)
    node.judge()
    assert told(node) == ("armed", True, "bad: cpus: 64 online before, 1 online now")
    node.abandon()
    with pytest.raises(trial_state.NotSupported, match=r"trial-1, ended \S+, rolled back: cpus: 64 online"):
        trial_state.observe(node.root)
