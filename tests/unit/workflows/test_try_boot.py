"""Who brings a node back from a trial boot, and what is told of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from nodeprep.fleet import FleetEvent, Outcome, Target
from nodeprep.model.policy import Policy
from nodeprep.model.trial import TrialEvidence, TrialReport
from nodeprep.node.trial_result import result
from nodeprep.workflows.outside import NO_BMC_WARNING
from nodeprep.workflows.trial import try_boot

EDIT = {"present": ["iommu=off"], "absent": [], "replace": [], "accept_aer_loss": False}
MINE = {"controller": "me@here", "run": "r1"}
FINDING = {"what": "cpus", "before": "2 online", "now": "1 online"}


def told(**kernel_args: Any) -> dict[str, Any]:
    return {"kernel_args": {"trial_id": "t1", "needs_reboot": False, "owner": MINE, **kernel_args}}


class FakeSession:
    """One host, whose plays end as scripted: a list of outcomes for each playbook."""

    def __init__(
        self, script: Mapping[str, Sequence[tuple[str, dict[str, Any]]]], *, local: bool = False
    ) -> None:
        self.script = {playbook: list(ends) for playbook, ends in script.items()}
        self.local = local
        self.played: list[tuple[str, dict[str, Any]]] = []
        self.fleet = SimpleNamespace(run=self._run)
        self.request = SimpleNamespace(forks=25)
        self.said: list[str] = []

    def notify(self, event: FleetEvent) -> None:
        self.said.append(event.message)

    def pick(self, hosts: Sequence[str]) -> list[Target]:
        return [Target(host, {}, local=self.local) for host in hosts]

    def policy(self, _host: str) -> Policy:
        return Policy()

    def record(self, *_more: Any, **_keys: Any) -> None:
        pass

    def _run(
        self, playbook: str, targets: Sequence[Target], *, host_vars: Any, **_more: Any
    ) -> dict[str, Outcome]:
        outcomes = {}
        for target in targets:
            state, data = self.script[playbook].pop(0)
            error = "" if state == "done" else f"{playbook} went wrong"
            outcomes[target.host] = Outcome(target.host, state, data, error)  # type: ignore[arg-type]
            self.played.append((playbook, host_vars[target.host]))
        return outcomes


class FakeOutside:
    """A BMC that answers, or none."""

    def __init__(self, *, bmc: bool, refuses: str = "", silent: str = "") -> None:
        self.bmc, self.refuses, self.silent = bmc, refuses, silent
        self.calls: list[str] = []

    def has_bmc(self, _host: str) -> bool:
        return self.bmc

    def mark(self, hosts: Sequence[str]) -> dict[str, str]:
        self.calls.append("mark")
        return dict.fromkeys(hosts, self.silent) if self.silent else {}

    def evidence(self, hosts: Mapping[str, str]) -> dict[str, tuple[TrialEvidence, ...]]:
        self.calls += ["evidence"] * bool(hosts)
        piece = TrialEvidence(source="console", state="ok", text="Kernel panic")
        return dict.fromkeys(hosts, (piece,))

    def power_cycle(self, methods: Mapping[str, str]) -> dict[str, str]:
        self.calls += [f"power {method}" for method in methods.values()]
        return dict.fromkeys(methods, self.refuses)


class FakeClaim:
    """Of the run r1, which owns what it began."""

    def begin(self) -> None:
        pass

    def owner(self, _host: str) -> dict[str, str]:
        return MINE

    def hear(self, _outcomes: Mapping[str, Outcome]) -> None:
        """What nodes say of whose trial it is has tests of its own (test_claim)."""

    def power_obstacle(self, _host: str, tried: Outcome) -> str:
        owner = tried.data.get("kernel_args", {}).get("owner", {})
        return "" if owner == MINE else "the trial is not this run's"


def trial(session: FakeSession, outside: FakeOutside, **more: Any) -> TrialReport:
    return try_boot(session, {"node1": EDIT}, outside, FakeClaim(), **more)["node1"]  # type: ignore[arg-type]


def test_every_step_says_whose_it_is() -> None:
    bad = told(verdict="bad", booted=True, findings=[FINDING], reboot_begun=True)
    script = {"trial.yml": [("failed", bad)], "recover.yml": [("done", told(answered=True))]}
    session = FakeSession(script)
    trial(session, FakeOutside(bmc=True))
    assert [variables["nodeprep_trial_owner"] for _, variables in session.played] == [MINE, MINE]


def test_the_power_of_a_node_whose_trial_is_anothers_is_left_alone() -> None:
    theirs = told(reboot_begun=True, owner={"controller": "alice@ctl1", "run": "r9"})
    script = {"trial.yml": [("failed", theirs)], "recover.yml": [("unreachable", {}), ("unreachable", {})]}
    outside = FakeOutside(bmc=True)
    report = trial(FakeSession(script), outside)
    assert report.state == "lost"
    assert "its power was left alone: the trial is not this run's" in report.notes
    assert not any(call.startswith("power") for call in outside.calls)


def test_a_good_boot_is_permanent() -> None:
    session = FakeSession({"trial.yml": [("done", told(verdict="good", reboot_s=95.0))]})
    report = trial(session, FakeOutside(bmc=True))
    assert (report.state, report.id, report.reboot_s, report.notes) == ("permanent", "t1", 95.0, ())
    assert session.said[0].startswith("trial boot: it has until ")
    assert session.played[0][1]["nodeprep_trial_reboot"] is True
    assert session.played[0][1]["nodeprep_kernel_args"] == EDIT


def test_without_a_bmc_it_is_said() -> None:
    session = FakeSession({"trial.yml": [("done", told(verdict="good"))]})
    assert trial(session, FakeOutside(bmc=False)).notes == (NO_BMC_WARNING,)


@pytest.mark.parametrize(("local", "asked"), [(True, True), (False, False)])
def test_a_trial_that_waits_for_its_boot_is_armed(local: bool, asked: bool) -> None:
    """This machine is never rebooted: nobody would be left to judge the boot."""
    session = FakeSession({"trial.yml": [("done", told(needs_reboot=True))]}, local=local)
    assert trial(session, FakeOutside(bmc=True), reboot=asked).state == "armed"
    assert session.played[0][1]["nodeprep_trial_reboot"] is False


@pytest.mark.parametrize("data", [{}, {"kernel_args": result(failed=True, msg="/boot is full")}])
def test_what_was_refused_before_anything_was_touched_needs_no_recovery(data: dict[str, Any]) -> None:
    session = FakeSession({"trial.yml": [("failed", data)]})
    report = trial(session, FakeOutside(bmc=True))
    assert (report.state, report.reason) == ("refused", "trial.yml went wrong")
    assert [playbook for playbook, _ in session.played] == ["trial.yml"]


def test_a_bad_boot_that_answers_is_rebooted_back_and_keeps_its_power() -> None:
    bad = told(verdict="bad", booted=True, findings=[FINDING], reboot_begun=True)
    back = told(answered=True, reboot_begun=True, needs_reboot=True, verdict="bad", findings=[FINDING])
    session = FakeSession({"trial.yml": [("failed", bad)], "recover.yml": [("done", back)]})
    outside = FakeOutside(bmc=True)
    report = trial(session, outside)
    assert (report.state, report.recovered_by) == ("rolled_back", "controller")
    # It was waited for in vain once.
    assert session.played[-1][1]["nodeprep_trial_settle_s"] == 0
    assert [(one.what, one.before, one.now) for one in report.findings] == [("cpus", "2 online", "1 online")]
    assert outside.calls == ["mark", "evidence"]


def test_a_node_that_panicked_and_came_back_did_so_itself() -> None:
    gone = told(
        verdict="not_booted", rebooted=True, reboot_begun=True, evidence={"kernel_log": ["last line"]}
    )
    session = FakeSession({"trial.yml": [("failed", gone)], "recover.yml": [("done", told(answered=True))]})
    report = trial(session, FakeOutside(bmc=True))
    assert (report.state, report.recovered_by) == ("rolled_back", "itself")
    assert [(piece.source, piece.text) for piece in report.evidence] == [
        ("console", "Kernel panic"),
        ("journal", "last line"),
    ]


def test_what_was_lost_stays_told_when_the_dead_man_was_faster_than_the_controller() -> None:
    bad = told(verdict="bad", booted=True, cmdline="ro maxcpus=1", findings=[FINDING])
    gone = told(
        verdict="not_booted",
        rebooted=True,
        trial_id="",
        findings=[{"what": "boot", "before": "the trial was to boot", "now": "the old arguments run"}],
        evidence={"kernel_log": ["nobody confirmed this trial boot"]},
    )
    session = FakeSession({"trial.yml": [("failed", bad)], "recover.yml": [("done", gone)]})
    report = trial(session, FakeOutside(bmc=True))
    assert (report.recovered_by, report.id, report.cmdline) == ("itself", "t1", "ro maxcpus=1")
    assert [one.what for one in report.findings] == ["cpus"]
    assert report.evidence[-1].text == "nobody confirmed this trial boot"


def test_a_node_that_hangs_is_power_cycled_after_its_evidence_is_taken() -> None:
    session = FakeSession(
        {
            "trial.yml": [("failed", told(reboot_begun=True))],
            "recover.yml": [("unreachable", {}), ("done", told(rebooted=True))],
        }
    )
    outside = FakeOutside(bmc=True)
    report = trial(session, outside)
    assert (report.state, report.recovered_by) == ("rolled_back", "bmc")
    # Once more before the power goes: afterwards console and chassis tell of the next boot.
    assert outside.calls == ["mark", "evidence", "evidence", "power cycle"]
    assert report.evidence[0].text == "Kernel panic"
    waited = [
        variables["nodeprep_trial_wait_s"]
        for playbook, variables in session.played
        if playbook == "recover.yml"
    ]
    assert waited == [60, Policy().trial.return_s]


def test_without_a_bmc_its_dead_man_gets_its_time() -> None:
    session = FakeSession(
        {
            "trial.yml": [("failed", told(reboot_begun=True))],
            "recover.yml": [("unreachable", {}), ("done", told(rebooted=True))],
        }
    )
    outside = FakeOutside(bmc=False)
    report = trial(session, outside)
    assert (report.state, report.recovered_by) == ("rolled_back", "itself")
    assert outside.calls == ["mark", "evidence", "evidence"]
    wait = session.played[-1][1]["nodeprep_trial_wait_s"]
    assert wait == Policy().trial.return_s + Policy().trial.confirm_s


def test_a_node_that_stays_away_is_lost_and_its_bmcs_refusal_is_told() -> None:
    session = FakeSession(
        {
            "trial.yml": [("failed", told(reboot_begun=True))],
            "recover.yml": [("unreachable", {}), ("unreachable", {})],
        }
    )
    report = trial(session, FakeOutside(bmc=True, refuses="the BMC answered and let nobody in"))
    assert (report.state, report.recovered_by) == ("lost", "")
    assert any("let nobody in" in note for note in report.notes)


@pytest.mark.parametrize("reboot", [True, False])
def test_a_node_that_was_never_rebooted_keeps_its_power(reboot: bool) -> None:
    """ssh was lost between two steps, or another controller held the node: the machine is fine."""
    session = FakeSession({"trial.yml": [("failed", told())], "recover.yml": [("unreachable", {})]})
    outside = FakeOutside(bmc=True)
    report = trial(session, outside, reboot=reboot)
    assert (report.state, report.recovered_by) == ("unsettled", "")
    assert not any(call.startswith("power") for call in outside.calls)


def test_a_node_that_answers_keeps_its_power_though_the_trial_could_not_be_taken_back() -> None:
    session = FakeSession(
        {
            "trial.yml": [("failed", told(reboot_begun=True))],
            "recover.yml": [("failed", {"kernel_args": {"answered": True}})],
        }
    )
    outside = FakeOutside(bmc=True)
    assert trial(session, outside).state == "unsettled"
    assert not any(call.startswith("power") for call in outside.calls)


def test_this_machine_is_neither_rebooted_nor_power_cycled_after_a_bad_boot() -> None:
    bad = told(verdict="bad", booted=True, findings=[FINDING])
    back = told(answered=True, needs_reboot=True)
    session = FakeSession({"trial.yml": [("failed", bad)], "recover.yml": [("done", back)]}, local=True)
    outside = FakeOutside(bmc=True)
    report = trial(session, outside)
    assert (report.state, report.recovered_by) == ("rolled_back", "")
    assert session.played[-1][1]["nodeprep_trial_reboot"] is False
    assert any("this boot is still the trial" in note for note in report.notes)
    assert not any(call.startswith("power") for call in outside.calls)


def test_what_was_permanent_before_the_connection_broke_is_not_called_rolled_back() -> None:
    lost = told(verdict="good", reboot_begun=True)
    after = told(answered=True, outcome="committed")
    session = FakeSession({"trial.yml": [("unreachable", lost)], "recover.yml": [("done", after)]})
    report = trial(session, FakeOutside(bmc=True))
    assert report.state == "permanent"
    assert any("before the connection broke" in note for note in report.notes)


def test_a_power_cycle_that_met_the_firmware_is_followed_by_one_more() -> None:
    session = FakeSession(
        {
            "trial.yml": [("failed", told(reboot_begun=True))],
            "recover.yml": [("unreachable", {}), ("unreachable", {}), ("done", told(answered=True))],
        }
    )
    outside = FakeOutside(bmc=True)
    report = trial(session, outside)
    assert (report.state, report.recovered_by) == ("rolled_back", "bmc")
    assert outside.calls.count("power cycle") == 2


def test_where_nothing_had_to_be_tried_there_is_no_report() -> None:
    session = FakeSession({"trial.yml": [("done", told(trial_id=""))]})
    found = try_boot(session, {"node1": EDIT}, FakeOutside(bmc=True), FakeClaim())  # type: ignore[arg-type]
    assert found == {}


def test_evidence_that_the_node_could_not_read_is_no_evidence() -> None:
    gone = told(verdict="not_booted", rebooted=True, evidence={"kernel_log_note": "no journal of that boot"})
    session = FakeSession({"trial.yml": [("failed", gone)], "recover.yml": [("done", told(answered=True))]})
    pieces = trial(session, FakeOutside(bmc=True)).evidence
    assert [(piece.source, piece.state) for piece in pieces] == [("console", "ok"), ("journal", "error")]


def test_a_bmc_that_cannot_be_asked_is_told_before_anything_is_staged() -> None:
    session = FakeSession({})
    report = trial(session, FakeOutside(bmc=True, silent="the BMC refused the password of user 'admin'"))
    assert report.state == "refused"
    assert "refused the password" in report.reason
    assert session.played == []


def test_a_node_that_refuses_the_login_is_up_and_keeps_its_power() -> None:
    class Refusing(FakeSession):
        def _run(self, playbook: str, *args: Any, **more: Any) -> dict[str, Outcome]:
            found = super()._run(playbook, *args, **more)
            if playbook == "recover.yml":
                words = "timed out waiting: sre@10.0.0.7: Permission denied (publickey)."
                return {host: replace(one, error=words) for host, one in found.items()}
            return found

    script = {"trial.yml": [("failed", told(reboot_begun=True))], "recover.yml": [("failed", {})]}
    outside = FakeOutside(bmc=True)
    report = trial(Refusing(script), outside)
    assert report.state == "unsettled"
    assert "Permission denied (publickey)" in report.reason
    assert not any(call.startswith("power") for call in outside.calls)


def test_a_node_whose_dead_man_fires_while_it_is_cleared_up_is_waited_for() -> None:
    bad = told(verdict="bad", booted=True, findings=[FINDING], reboot_begun=True)
    back = told(answered=True, verdict="not_booted", rebooted=True)
    script = {
        "trial.yml": [("failed", bad)],
        "recover.yml": [("unreachable", {"kernel_args": {"answered": True}}), ("done", back)],
    }
    session, outside = FakeSession(script), FakeOutside(bmc=True)
    report = trial(session, outside)
    assert (report.state, report.recovered_by) == ("rolled_back", "itself")
    assert [one.what for one in report.findings] == ["cpus"]
    assert session.played[-1][1]["nodeprep_trial_wait_s"] == Policy().trial.return_s
    assert not any(call.startswith("power") for call in outside.calls)
