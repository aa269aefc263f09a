"""What a run may do to nodes: none that another controller tries kernel arguments on."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from nodeprep.fleet import Outcome
from nodeprep.model.codec import decode
from nodeprep.model.facts import NodeFacts, TrialBoot
from nodeprep.model.policy import Policy
from nodeprep.model.reading import Reading
from nodeprep.workflows import claim as module
from nodeprep.workflows.claim import claim, controller
from nodeprep.workflows.home import Home
from nodeprep.workflows.session import Observed

FACTS = decode(
    (Path(__file__).parents[2] / "cases" / "knobs" / "facts.json").read_bytes(), NodeFacts, source="base"
)


def session(home: Home, run_id: str, **owner: Any) -> Any:
    """A run over n1, on which a trial of some owner is under way."""
    trial = TrialBoot(id="t1", phase="armed", cmdline="", booted=False, staged_at="2026-11-30", **owner)
    loader = replace(FACTS.boot_loader, trial=Reading.ok(trial))
    return SimpleNamespace(
        home=home,
        run_id=run_id,
        facts={"n1": replace(FACTS, boot_loader=loader)},
        policy=lambda _host: Policy(),
    )


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def test_another_controllers_trial_is_left_alone(home: Home) -> None:
    theirs = session(home, "b", controller="alice@ctl1", run="a", since="10:00", held_s=90)
    with claim(theirs) as mine:
        words, hint = mine.refusal("n1")
        assert words == "a trial boot is under way, begun by alice@ctl1, run a, since 10:00"
        assert "anybody may go on in 2 min" in hint
        assert mine.owner("n1")["takes_over"] == ""


def test_a_stale_trial_and_one_of_nobody_may_be_gone_on_with(home: Home) -> None:
    for owner in ({"controller": "alice@ctl1", "run": "a", "held_s": 0}, {}):
        with claim(session(home, "b", **owner)) as mine:
            assert mine.refusal("n1") == ("", "")
    with claim(session(home, "b")) as mine:
        assert mine.refusal("n9") == ("", "")


def test_a_run_of_this_controller_holds_its_node_as_long_as_it_lives(home: Home) -> None:
    me = controller(home)
    second = session(home, "second", controller=me, run="first", since="10:00", held_s=90)
    with claim(session(home, "first")), claim(second) as mine:
        assert "begun by " + me in mine.refusal("n1")[0]
        assert "that run still goes on" in mine.refusal("n1")[1]
        assert mine.owner("n1")["takes_over"] == ""
    with claim(session(home, "third", controller=me, run="first", since="10:00", held_s=90)) as mine:
        assert mine.refusal("n1") == ("", "")
        assert mine.owner("n1")["takes_over"] == "first"
        assert mine.owner("n1")["hold_s"] == 2 * Policy().trial.return_s + Policy().trial.confirm_s + 600
    assert list((home.path / "claims").iterdir()) == []


def test_a_killed_run_is_taken_over(home: Home) -> None:
    """The kernel lets go of its mark, and the file stays."""
    code = (
        "import sys, time\nfrom pathlib import Path\nfrom types import SimpleNamespace\n"
        "from nodeprep.workflows.claim import claim\nfrom nodeprep.workflows.home import Home\n"
        f"with claim(SimpleNamespace(home=Home(Path({str(home.path)!r})), run_id='killed')):\n"
        "    print('held', flush=True)\n    time.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as killed:
        assert killed.stdout is not None
        assert killed.stdout.readline() == "held\n"
        mine = session(home, "next", controller=controller(home), run="killed", since="10:00", held_s=90)
        with claim(mine) as claimed:
            assert "still goes on" in claimed.refusal("n1")[1]
        killed.kill()
        killed.wait()
    with claim(mine) as claimed:
        assert claimed.refusal("n1") == ("", "")


def test_a_run_id_that_is_a_path_is_never_looked_for(home: Home) -> None:
    mine = session(home, "b", controller=controller(home), run="../../etc/x", since="10:00", held_s=90)
    with claim(mine) as claimed:
        assert claimed.refusal("n1")[0]


def test_only_a_trial_that_this_run_began_lets_it_cycle_the_power(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    def tried(owner: dict[str, str]) -> Outcome:
        return Outcome("n1", "failed", {"kernel_args": {"owner": owner}})

    with claim(session(home, "mine")) as claimed:
        claimed.begin()
        assert claimed.power_obstacle("n1", tried({"run": "mine"})) == ""
        assert "of alice@ctl1" in claimed.power_obstacle(
            "n1", tried({"controller": "alice@ctl1", "run": "theirs"})
        )
        assert claimed.power_obstacle("n1", Outcome("n1", "unreachable", {}))
        began = module.time.monotonic()
        hold_s = claimed.owner("n1")["hold_s"]
        monkeypatch.setattr(module.time, "monotonic", lambda: began + hold_s)
        assert "silent for so long" in claimed.power_obstacle("n1", tried({"run": "mine"}))


def test_another_home_is_another_controller(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/sre")
    assert controller(home).endswith(f":{home.path}")
    assert ":" not in controller(Home(Path("/home/sre/.local/state/nodeprep")))


def test_a_node_that_names_another_holder_is_not_reset(home: Home) -> None:
    with claim(session(home, "b")) as mine:
        assert mine.reset_obstacle("n1") == ""
        held = {"kernel_args": {"held": True, "owner": {"controller": "alice@ctl1", "run": "a"}}}
        mine.hear(
            {
                "n1": Outcome("n1", "failed", held, "under way here", ""),
                "n2": Outcome("n2", "done", {}, "", ""),
            }
        )
        assert mine.reset_obstacle("n1") == "a trial boot of alice@ctl1 is under way"
        assert mine.reset_obstacle("n2") == ""


def test_a_trial_that_began_after_the_plan_is_met_before_a_reset(home: Home) -> None:
    old = session(home, "b", controller="alice@ctl1", run="a", held_s=0)
    began = session(home, "b", controller="alice@ctl1", run="a", since="10:00", held_s=90).facts["n1"]
    mine_now = session(home, "b", controller=controller(home), run="b", since="10:00", held_s=90).facts["n1"]
    damaged = replace(FACTS, boot_loader=replace(FACTS.boot_loader, trial=Reading.error("cannot be read")))
    asked: list[Any] = []

    def observe(hosts: Any, **more: Any) -> Observed:
        asked.append(more["label"])
        told = {"theirs": began, "mine": mine_now, "damaged": damaged, "nobody": FACTS}
        lost = Outcome("silent", "unreachable", {}, "no route", "")
        return Observed(facts={host: told[host] for host in hosts if host in told}, failed={"silent": lost})

    old.observe = observe
    with claim(old) as mine:
        assert mine.refusal("n1") == ("", "")
        held = mine.look_again(["theirs", "mine", "damaged", "nobody", "silent"])
        assert set(held) == {"theirs", "damaged", "silent"}
        assert "was not reset: a trial boot is under way, begun by alice@ctl1" in held["theirs"][0]
        assert "no route" in held["silent"][0]
        assert "cannot be read" in held["damaged"][0]
        assert all(hint for _, hint in held.values())
        assert "alice@ctl1" in mine.reset_obstacle("theirs")
        assert mine.reset_obstacle("mine") == ""
        assert mine.look_again([]) == {}
    assert asked == ["before_reset"]
