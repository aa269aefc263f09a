"""Apply believes what it sees afterwards, and stops when too many hosts are lost."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from nodeprep.fleet import Outcome, Target
from nodeprep.knobs import build_plan
from nodeprep.model.codec import decode
from nodeprep.model.facts import NodeFacts, TrialBoot
from nodeprep.model.policy import Policy
from nodeprep.model.reading import Reading
from nodeprep.model.spec import NodeSpec
from nodeprep.profiles import SiteSettings, resolve, settings_from_variables
from nodeprep.workflows.apply import Budget, apply
from nodeprep.workflows.home import Home
from nodeprep.workflows.session import Observed

FACTS = Path(__file__).parents[2] / "cases" / "knobs" / "facts.json"
WANTED = {"nodeprep_policy": {"gpu": {"power_limit": "600W"}}}


def node(host: str, limit_w: float) -> NodeFacts:
    """A node whose GPUs, and whose boot unit, are at a limit."""
    facts = replace(decode(FACTS.read_bytes(), NodeFacts, source="base"), host=host)
    watts = Reading.ok(limit_w)
    gpus = tuple(
        replace(gpu, power=replace(gpu.power, limit_w=watts, requested_w=watts, enforced_w=watts))
        for gpu in facts.nvml.gpus.value or ()
    )
    unit = replace(facts.driver.gpu_power_unit.require("unit"), limit=f"{limit_w:g}W")
    driver = replace(facts.driver, gpu_power_unit=Reading.ok(unit))
    return replace(facts, nvml=replace(facts.nvml, gpus=Reading.ok(gpus)), driver=driver)


class FakeSession:
    """Hosts that answer as told. `after` is what a look finds once the play is through."""

    def __init__(self, after: Mapping[str, NodeFacts | None], outcomes: Mapping[str, Outcome]) -> None:
        self.settings: SiteSettings = settings_from_variables(WANTED, source="test", known_checks=())
        self.after, self.outcomes = after, outcomes
        self.specs: dict[str, NodeSpec] = {}
        self.records: list[tuple[str, str, str]] = []
        self.played: list[list[str]] = []
        self.hosts = tuple(after)
        self.facts: dict[str, NodeFacts] = {}
        self.home, self.run_id = Home(Path(tempfile.mkdtemp())), "r1"
        self.fleet = SimpleNamespace(run=self._run)

    def spec(self, facts: NodeFacts) -> NodeSpec:
        self.specs[facts.host] = resolve(facts.host, self.settings, facts, today=date(2026, 11, 30))
        return self.specs[facts.host]

    def pick(self, hosts: Sequence[str]) -> list[Target]:
        return [Target(host, {}) for host in hosts]

    def observe(self, hosts: Sequence[str], **_more: Any) -> Observed:
        seen = {host: self.after[host] for host in hosts}
        lost = {host: Outcome(host, "unreachable", {}, "gone", "") for host in hosts if seen[host] is None}
        return Observed(facts={host: f for host, f in seen.items() if f is not None}, failed=lost)

    def record(self, host: str, phase: str, state: str, **_more: Any) -> None:
        self.records.append((host, phase, state))

    def policy(self, _host: str) -> Policy:
        return Policy()

    def save(self, relative: str, document: object) -> None:
        json.dumps(relative)

    def _run(self, _playbook: str, targets: Sequence[Target], **_more: Any) -> dict[str, Outcome]:
        hosts = [target.host for target in targets]
        self.played.append(hosts)
        return {host: self.outcomes.get(host, Outcome(host, "done", {}, "", "")) for host in hosts}


def test_a_node_on_which_another_controller_tries_something_is_left_alone() -> None:
    session = FakeSession({"n1": node("n1", 600.0), "n2": node("n2", 600.0)}, {})
    theirs = TrialBoot(
        id="t1", phase="armed", cmdline="", booted=False, staged_at="", controller="alice@ctl1", held_s=60
    )
    facts = node("n1", 700.0)
    session.facts["n1"] = replace(facts, boot_loader=replace(facts.boot_loader, trial=Reading.ok(theirs)))
    assert run(session) == {"n1": "failed", "n2": "applied"}
    assert session.played == [["n2"]]
    assert ("n1", "apply", "failed") in session.records


def run(session: FakeSession, budget: Budget = Budget()) -> dict[str, str]:  # noqa: B008
    before = [node(host, 700.0) for host in session.hosts]
    plans = {facts.host: build_plan(session.spec(facts), facts) for facts in before}
    return {host: done.state for host, done in apply(session, plans, budget).items()}  # type: ignore[arg-type]


def test_what_is_in_effect_afterwards_is_applied() -> None:
    session = FakeSession({"n1": node("n1", 600.0)}, {})
    assert run(session) == {"n1": "applied"}


def test_what_was_written_and_is_not_in_effect_is_failed() -> None:
    session = FakeSession({"n1": node("n1", 700.0)}, {})
    assert run(session) == {"n1": "failed"}
    assert ("n1", "verify", "failed") in session.records


def test_a_host_that_is_gone_afterwards_is_failed() -> None:
    assert run(FakeSession({"n1": None}, {})) == {"n1": "failed"}


def test_a_node_that_is_as_wanted_is_not_touched() -> None:
    session = FakeSession({"n1": node("n1", 600.0)}, {})
    facts = node("n1", 600.0)
    plans = {"n1": build_plan(session.spec(facts), facts)}
    assert apply(session, plans, Budget())["n1"].state == "unchanged"  # type: ignore[arg-type]
    assert session.played == []


@pytest.mark.parametrize(("allowed", "played"), [("0", 1), ("1", 2), (None, 4)])
def test_lost_hosts_use_up_the_budget(allowed: str | None, played: int) -> None:
    hosts = [f"n{number}" for number in range(4)]
    lost = {host: Outcome(host, "unreachable", {}, "no route", "") for host in hosts}
    session = FakeSession({host: node(host, 600.0) for host in hosts}, lost)
    states = run(session, Budget(batch="1", max_failed=allowed))
    assert len(session.played) == played
    assert list(states.values()) == ["failed"] * played + ["skipped"] * (4 - played)


def test_hosts_that_could_not_even_be_planned_count_as_lost() -> None:
    session = FakeSession({"n1": node("n1", 600.0), "n2": node("n2", 600.0)}, {})
    facts = node("n1", 700.0)
    plans = {"n1": build_plan(session.spec(facts), facts)}
    done = apply(session, plans, Budget(max_failed="0"))  # type: ignore[arg-type]
    assert done["n1"].state == "skipped"
    assert session.played == []


@pytest.mark.parametrize("theirs", [True, False])
def test_a_plain_reboot_asks_the_node_anew(theirs: bool) -> None:
    session = FakeSession({"n1": node("n1", 600.0)}, {})
    session.outcomes = {"n1": Outcome("n1", "done", {"pcie_link": {"pending_reboot": True}}, "", "")}
    facts = session.after["n1"]
    assert facts is not None
    trial = TrialBoot(
        id="t1", phase="armed", cmdline="", booted=False, staged_at="", controller="alice@ctl1", held_s=60
    )
    if theirs:
        loader = replace(facts.boot_loader, trial=Reading.ok(trial))
        session.after = {"n1": replace(facts, boot_loader=loader)}
    assert run(session) == {"n1": "failed" if theirs else "applied"}
    assert len(session.played) == (1 if theirs else 2)
    assert (("n1", "reboot", "failed") in session.records) is theirs
