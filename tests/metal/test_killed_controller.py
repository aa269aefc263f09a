"""The controller is killed (SIGKILL) at each step of a trial boot: no node stays on unproven arguments."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from apply_helpers import CONFIRM_S, SLOW, Site, look, site

from nodeprep.sim.vm import Hardware

FULL = pytest.mark.metal_full

# Step, and seconds into it: a module takes some to start on the node, and a reboot five to be under way.
POINTS = (
    pytest.param("write", 0.0, marks=FULL),
    pytest.param("write", 6.0, marks=FULL),
    pytest.param("one_shot", 0.0, marks=FULL),
    pytest.param("reboot", 0.0, marks=FULL),
    pytest.param("reboot", 15.0, marks=FULL),
    pytest.param("verify", 0.0, marks=FULL),
    pytest.param("commit", 0.0, marks=FULL),
    pytest.param("commit", 6.0, marks=FULL),
)


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with site(tmp_path_factory.mktemp("k"), [Hardware()]) as made:
        yield made


@pytest.mark.parametrize(("step", "after_s"), POINTS)
def test_the_next_apply_finishes_what_a_killed_one_began(node: Site, step: str, after_s: float) -> None:
    before = look(node.vm)
    # The kernel ignores a dotted word of a module that is not there: an argument that is good.
    word = f"metal.{step}={after_s:.0f}"
    node.kill_at(step, [word], after_s=after_s)

    # Whatever the node was at: what any reset would boot is proven.
    allowed = {before.permanent}
    if step == "commit":
        allowed.add(f"{before.permanent} {word}")
    node.vm.wait_ssh()
    then = look(node.vm)
    assert then.permanent in allowed

    done = node.run("apply", [word])
    now = look(node.vm)
    assert (now.next_entry, now.left) == ("", "")
    if done.document["state"] == "unchanged" or done.trial["state"] == "permanent":
        assert now.permanent == f"{before.permanent} {word}"
        assert word in now.running.split()
    else:
        # The dead-man's switch was faster, which takes a slow computer.
        assert SLOW, done.told()
        assert (done.trial["state"], done.trial["recovered_by"]) == ("rolled_back", "itself"), done.told()
        assert now.running == now.permanent == before.permanent


@FULL
def test_another_controller_leaves_a_trial_to_its_owner(node: Site, tmp_path: Path) -> None:
    before = look(node.vm)
    word = "metal.owner=1"
    node.kill_at("one_shot", [word])
    # The killed controller's step ends by itself.
    time.sleep(20)
    then = look(node.vm)
    for verb in ("apply", "rollback"):
        refused = node.run(verb, ["metal.other=1"], home=tmp_path)
        assert refused.code == 11
        assert refused.document["state"] == "failed"
        assert "a trial boot is under way, begun by " in refused.document["error"], refused.document
        assert "anybody may go on in " in refused.document["hint"]
    assert look(node.vm) == then
    # Its own controller's next run goes on.
    assert node.run("apply", [word]).trial["state"] == "permanent"
    assert look(node.vm).permanent == f"{before.permanent} {word}"


@FULL
def test_a_reset_amid_the_commit_leaves_old_or_proven_arguments(node: Site) -> None:
    """The controller is killed, and then the power goes too, while grub.cfg is being written."""
    before = look(node.vm)
    word = "metal.reset=1"
    node.kill_at("commit", [word], after_s=4.0)
    trial = node.vm.boot_id()
    node.vm.power("reset")
    node.vm.wait_ssh(not_boot_id=trial)
    now = look(node.vm)
    assert now.permanent in (before.permanent, f"{before.permanent} {word}")
    assert now.running == now.permanent
    assert node.run("apply", [word]).document["state"] in ("applied", "unchanged", "failed")
    assert look(node.vm).left == ""


@FULL
def test_a_controller_that_never_comes_back_costs_the_node_nothing(node: Site) -> None:
    before = look(node.vm)
    node.kill_at("reboot", ["maxcpus=1"])
    # Whether or not its reboot was on its way: the next boot is the trial, whoever causes it.
    node.vm.ssh_result("systemctl reboot")
    trial = node.vm.wait_ssh(not_boot_id=before.id)
    tried = look(node.vm)
    assert "maxcpus=1" in tried.running.split()
    assert tried.permanent == before.permanent

    node.vm.wait_ssh(not_boot_id=trial, timeout_s=CONFIRM_S + 400)
    now = look(node.vm)
    assert (now.running, now.permanent, now.next_entry) == (before.permanent, before.permanent, "")
    assert node.vm.ssh("nproc").strip() == "2"
    # What is left of the trial acts no more, and goes with the next run, which tells of it.
    done = node.run("apply", ["maxcpus=1"])
    assert (done.trial["state"], done.trial["recovered_by"]) == ("rolled_back", "itself"), done.told()
    assert "nobody confirmed this trial boot" in done.told()
    assert look(node.vm).left == ""
