"""kill -9 at every write and tool call of every step: the node stays safe, and the next run ends well."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from killing import Killer
from trial_node import EDIT, OLD, Node

from nodeprep.node import trial_state
from nodeprep.node.kernel_cmdline import Edit

NEW = EDIT.apply(OLD)
BAD = Edit(present=("maxcpus=1",))
MORE = Edit(present=("nosmt",))


@pytest.fixture
def killer(monkeypatch: pytest.MonkeyPatch) -> Killer:
    return Killer(monkeypatch)


def lose_cpus(node: Node) -> None:
    node.write("/sys/devices/system/cpu/online", "0\n")


def killed_everywhere(
    folder: Path, killer: Killer, prepare: Callable[[Node], None], act: Callable[[Node], object]
) -> list[Node]:
    """A node for each point at which the action can be killed, as it is right after."""
    nodes = []
    for at in itertools.count():
        node = Node(folder / f"at{at}")
        node.effects["maxcpus=1"] = lose_cpus
        prepare(node)
        if killer.survives(partial(act, node), at):
            return nodes
        nodes.append(node)
    raise AssertionError


def nothing(_node: Node) -> None:
    """A fresh node."""


def committed(node: Node) -> None:
    """Something was made permanent here before."""
    assert node.apply(MORE, "trial-0") == "committed"
    node.boot()


def run(node: Node, edit: Edit, patience: int) -> str:
    """Runs again as an operator would, who is told that a trial was lost and tries once more."""
    for attempt in range(1 + patience):
        done = node.apply(edit, f"again-{attempt}")
        if done != "rolled back":
            break
    return done


def resets(node: Node) -> list[str]:
    """What the node runs after each of two resets: the first may be a trial, nobody has to do anything."""
    return [node.boot(), node.boot()]


@pytest.mark.parametrize("reset", [False, True])
@pytest.mark.parametrize("prepare", [nothing, committed])
def test_a_good_edit(tmp_path: Path, killer: Killer, prepare: Callable[[Node], None], reset: bool) -> None:
    nodes = killed_everywhere(tmp_path, killer, prepare, lambda node: node.apply())
    assert len(nodes) > 20
    permanents = set()
    for node in nodes:
        old = MORE.apply(OLD) if prepare is committed else OLD
        judged = EDIT.apply(old)
        state = trial_state.load(node.root)
        may_be = {old, judged} if state is None or state.verdict == "good" else {old}
        assert node.permanent in may_be
        permanents.add(node.permanent)
        if reset:
            assert resets(node)[1] in may_be
        assert run(node, EDIT, patience=int(reset)) in ("committed", "as wanted")
        assert node.loader.everywhere == {judged}
        assert node.clean
        assert EDIT.satisfied(node.boot())
        assert node.apply(trial_id="last") == "as wanted"
    # The points lie on both sides of the moment that counts.
    assert len(permanents) == 2


@pytest.mark.parametrize("reset", [False, True])
def test_a_bad_edit(tmp_path: Path, killer: Killer, reset: bool) -> None:
    nodes = killed_everywhere(tmp_path, killer, nothing, lambda node: node.apply(BAD))
    assert len(nodes) > 15
    for node in nodes:
        assert node.loader.everywhere == {OLD}
        if reset:
            assert resets(node)[1] == OLD
        assert run(node, BAD, patience=1) == "rolled back"
        assert node.loader.everywhere == {OLD}
        assert node.clean
        assert node.boot() == OLD
        # The node is as good as new: what is right still goes through.
        assert node.apply(trial_id="right") == "committed"


@pytest.mark.parametrize("steps", ["stage", "stage arm", "stage arm boot", "stage arm boot judge"])
def test_abandoning(tmp_path: Path, killer: Killer, steps: str) -> None:
    def prepare(node: Node) -> None:
        for step in steps.split():
            getattr(node, step)()

    nodes = killed_everywhere(tmp_path, killer, prepare, lambda node: node.abandon())
    assert len(nodes) > 5
    for node in nodes:
        assert not node.abandon()["failed"]
        assert node.clean
        assert node.boot() == OLD
        assert trial_state.restore_point(node.root) is None


def test_abandoning_a_commit_that_was_broken_off(tmp_path: Path, killer: Killer) -> None:
    """Wherever a commit dies, abandoning takes all of it back, or finds it complete and over."""

    def judged(node: Node) -> None:
        node.try_out()
        assert node.judge()["verdict"] == "good"

    for node in killed_everywhere(tmp_path, killer, judged, lambda node: node.commit()):
        there = trial_state.load(node.root) is not None
        assert not node.abandon()["failed"]
        assert node.loader.everywhere == {OLD if there else NEW}
        assert node.clean


@pytest.mark.parametrize("reset", [False, True])
def test_restoring(tmp_path: Path, killer: Killer, reset: bool) -> None:
    def prepare(node: Node) -> None:
        node.apply(MORE, "trial-0")
        node.apply()
        node.boot()

    nodes = killed_everywhere(tmp_path, killer, prepare, lambda node: node.restore())
    assert len(nodes) >= 3
    for node in nodes:
        if reset:
            assert node.boot() in (OLD, EDIT.apply(MORE.apply(OLD)))
        done = node.restore()
        assert not done["failed"]
        assert node.loader.everywhere == {OLD}
        if done["needs_reboot"]:
            assert node.boot() == OLD
            done = node.restore()
        assert done["finished"]
        assert trial_state.restore_point(node.root) is None
