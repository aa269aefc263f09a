"""A trial is its owner's: others are refused until the owner has been silent for too long."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from trial_node import EDIT, OLD, Node

from nodeprep.node import trial_owner, trial_state
from nodeprep.node.boot_loaders import Refusal
from nodeprep.node.kernel_cmdline import Edit
from nodeprep.node.trial_owner import Caller

ALICE = Caller("alice@ctl1", "run-a", hold_s=3600)
BOB = Caller("bob@ctl2", "run-b")
NAMELESS = Caller()
OTHER = Edit(present=("mitigations=off",))


class Owned(Node):
    """A node whose steps say who takes them."""

    def step(self, caller: Caller, name: str, *args: Any, **more: Any) -> dict[str, Any]:
        if name == "stage":
            more["owner"] = caller.claim()
        return trial_owner.step(self.root, caller, lambda: getattr(self, name)(*args, **more))


@pytest.fixture
def node(tmp_path: Path) -> Owned:
    return Owned(tmp_path)


def later(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(trial_state, "now", lambda: text)


@pytest.mark.parametrize("name", ["stage", "arm", "judge", "commit", "abandon", "restore"])
@pytest.mark.parametrize("other", [BOB, NAMELESS])
def test_no_step_of_another_is_taken(node: Owned, name: str, other: Caller) -> None:
    assert not node.step(ALICE, "stage")["failed"]
    before = trial_state.load(node.root)
    refused = node.step(other, name, *([OTHER] if name == "stage" else []))
    assert (refused["failed"], refused["held"]) == (True, True)
    assert "begun by alice@ctl1, run run-a, since " in refused["msg"]
    assert "anybody may go on in 60 min" in refused["hint"]
    assert trial_state.load(node.root) == before
    assert node.loader.default_entry().cmdline == OLD


def test_the_owner_goes_through_and_is_told(node: Owned) -> None:
    assert node.step(ALICE, "stage")["owner"]["run"] == "run-a"
    assert node.step(ALICE, "arm")["owner"]["controller"] == "alice@ctl1"
    node.boot()
    assert node.step(ALICE, "judge")["verdict"] == "good"
    done = node.step(ALICE, "commit")
    assert (done["outcome"], done["owner"]["run"]) == ("committed", "run-a")
    # What is over is nobody's.
    assert not node.step(BOB, "stage", OTHER)["failed"]


def test_the_next_run_of_the_same_controller_takes_over_what_an_ended_one_left(node: Owned) -> None:
    node.step(ALICE, "stage")
    live = Caller("alice@ctl1", "run-c")
    assert "begun by alice@ctl1, run run-a" in node.step(live, "arm")["msg"]
    after = Caller("alice@ctl1", "run-c", takes_over="run-a")
    assert not node.step(after, "arm")["failed"]
    found = trial_state.load(node.root)
    assert found is not None
    assert (found.phase, found.owner["run"]) == ("armed", "run-c")
    assert node.step(ALICE, "judge")["held"]


def test_a_trial_without_a_run_is_its_controllers_whoever_goes_on(node: Owned) -> None:
    """The role names no run."""
    node.step(Caller("alice@ctl1"), "stage")
    assert node.step(BOB, "arm")["held"]
    assert not node.step(ALICE, "arm")["failed"]


def test_a_silent_owner_loses_the_trial(node: Owned, monkeypatch: pytest.MonkeyPatch) -> None:
    later(monkeypatch, "2026-11-30T10:00:00+00:00")
    node.step(ALICE, "stage")
    later(monkeypatch, "2026-11-30T10:30:00+00:00")
    node.step(ALICE, "arm")
    later(monkeypatch, "2026-11-30T11:29:59+00:00")
    assert node.step(BOB, "abandon")["held"]
    assert trial_state.observe(node.root)["held_s"] == 1
    later(monkeypatch, "2026-11-30T11:30:00+00:00")
    assert trial_state.observe(node.root)["held_s"] == 0
    assert node.step(BOB, "abandon")["outcome"] == "abandoned"


def test_a_clock_that_was_set_back_holds_nobody_up(node: Owned, monkeypatch: pytest.MonkeyPatch) -> None:
    later(monkeypatch, "2031-01-01T00:00:00+00:00")
    node.step(ALICE, "stage")
    later(monkeypatch, "2026-11-30T10:00:00+00:00")
    assert not node.step(BOB, "abandon")["failed"]


def test_the_owner_keeps_the_beginning(node: Owned, monkeypatch: pytest.MonkeyPatch) -> None:
    later(monkeypatch, "2026-11-30T10:00:00+00:00")
    node.step(ALICE, "stage")
    later(monkeypatch, "2026-11-30T10:05:00+00:00")
    owner = node.step(ALICE, "arm")["owner"]
    assert (owner["since"], owner["seen_at"]) == ("2026-11-30T10:00:00+00:00", "2026-11-30T10:05:00+00:00")


def test_a_trial_of_an_older_version_has_no_owner(node: Owned) -> None:
    node.stage(EDIT)
    path = Path(node.root + trial_state.STATE)
    path.write_text(path.read_text().replace('  "owner": {},\n', ""))
    assert "owner" not in path.read_text()
    assert not node.step(BOB, "arm")["failed"]


def test_check_mode_claims_nothing(node: Owned) -> None:
    node.stage(EDIT)
    trial_owner.step(node.root, BOB, lambda: node.arm(check_mode=True), check_mode=True)
    found = trial_state.load(node.root)
    assert found is not None
    assert found.owner == {}


def test_a_claim_without_end_is_refused() -> None:
    with pytest.raises(Refusal, match="hold_s is 1000000"):
        Caller.of({"controller": "x", "hold_s": 1000000})
    assert Caller.of(None) == NAMELESS
