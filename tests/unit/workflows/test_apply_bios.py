"""Kernel arguments and BIOS settings of one apply: one reboot, and both back when it went wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from bios_site import VT, Site, machine

from nodeprep.fleet import Outcome, Target
from nodeprep.knobs import build_plan
from nodeprep.model.codec import decode
from nodeprep.model.facts import NodeFacts, TrialBoot
from nodeprep.model.outputs import Application
from nodeprep.model.reading import Reading
from nodeprep.model.spec import NodeSpec
from nodeprep.model.trial import TrialReport, TrialState
from nodeprep.profiles import resolve, settings_from_variables
from nodeprep.workflows import apply as workflow
from nodeprep.workflows import bios_apply, bios_work
from nodeprep.workflows.bios_facts import with_bios
from nodeprep.workflows.session import Observed

FACTS = decode(
    (Path(__file__).parents[2] / "cases" / "knobs" / "facts.json").read_bytes(), NodeFacts, source="base"
)
BIOS = {"iommu": "disabled", "aspm": "disabled"}
# As the base node has it, so that nothing else is due.
GPU = {"power_limit": "650W"}


class ApplySite(Site):
    """A session in which hosts can also be planned and looked at."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.specs: dict[str, NodeSpec] = {}
        self.run_id = "run1"
        self.facts: dict[str, NodeFacts] = {}
        self.played: list[str] = []
        self.policy_data: dict[str, Any] = {"bios": BIOS}
        self.units: tuple[str, ...] = ()
        self.trial: TrialBoot | None = None

    def spec(self, facts: NodeFacts) -> NodeSpec:
        settings = settings_from_variables(
            {"nodeprep_policy": self.policy_data}, source="test", known_checks=()
        )
        self.specs[facts.host] = resolve(facts.host, settings, facts, today=date(2026, 11, 30))
        return self.specs[facts.host]

    def observe(self, hosts: Sequence[str], **_more: Any) -> Observed:
        bios = self.look()
        return Observed(facts={host: with_bios(self.node(host), bios[host]) for host in hosts}, failed={})

    def node(self, host: str) -> NodeFacts:
        """The host as its kernel shows it."""
        found = replace(FACTS, host=host, iommu=replace(FACTS.iommu, units=Reading.ok(self.units)))
        if self.trial is None:
            return found
        return replace(found, boot_loader=replace(found.boot_loader, trial=Reading.ok(self.trial)))

    def save(self, *_document: object) -> None:
        """Nobody reads it."""

    def _run(self, playbook: str, targets: Sequence[Target], **_more: Any) -> dict[str, Outcome]:
        self.played.append(playbook)
        return {target.host: Outcome(target.host, "done", {}, "", "") for target in targets}

    def apply(self, *, reboot: bool = True) -> Mapping[str, Application]:
        """Plans, then applies."""
        facts = self.observe(list(self.hosts)).facts
        plans = {host: build_plan(self.spec(found), found) for host, found in facts.items()}
        return workflow.apply(self, plans, workflow.Budget(), reboot=reboot)  # type: ignore[arg-type]


@pytest.fixture
def trial(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A trial boot that ends as told; unless it was refused or only armed, the operating system restarts."""

    def end(hosts: ApplySite, state: TrialState) -> list[str]:
        tried: list[str] = []

        def try_boot(_session: Any, edits: Mapping[str, Any], *_more: Any, **_options: Any) -> Any:
            tried.extend(edits)
            for host in edits:
                assert hosts.waiting(host).get(VT) == "Disabled", "the BIOS was not staged before the boot"
                if state not in ("refused", "armed"):
                    hosts.os_reboot(host)
            return {host: TrialReport(state=state, id="t1", cmdline="", reason="told so") for host in edits}

        monkeypatch.setattr(workflow, "try_boot", try_boot)
        return tried

    return end


def with_arguments(site: Any, *machines: Any) -> ApplySite:
    """Hosts that need new kernel arguments besides."""
    hosts: ApplySite = site(*machines, kind=ApplySite)
    arguments = {"present": ["transparent_hugepage=madvise"]}
    hosts.policy_data = {"bios": BIOS, "gpu": GPU, "kernel_args": arguments}
    return hosts


def test_one_reboot_for_kernel_arguments_and_bios(site: Any, trial: Any) -> None:
    hosts = with_arguments(site, machine())
    tried = trial(hosts, "permanent")
    done = hosts.apply()["n1"]
    assert tried == ["n1"]
    assert (hosts.current()[VT], hosts.boots()) == ("Disabled", 1)
    assert [one.state for one in done.bios] == ["staged", "unchanged"]
    assert "reboot.yml" not in hosts.played
    assert "return.yml" not in hosts.played


def test_a_trial_that_was_rolled_back_takes_the_bios_along(site: Any, trial: Any) -> None:
    hosts = with_arguments(site, machine())
    trial(hosts, "rolled_back")
    done = hosts.apply()["n1"]
    assert done.state == "failed"
    assert "the trial boot was rolled back" in done.error
    assert "the BIOS is as before" in done.error
    assert hosts.current()[VT] == "Enabled"
    assert done.bios[-1].undone


def test_a_bios_that_refuses_costs_no_trial(site: Any, trial: Any) -> None:
    hosts = with_arguments(site, machine("supermicro", faults=("licence",)))
    tried = trial(hosts, "permanent")
    done = hosts.apply()["n1"]
    assert tried == []
    assert done.state == "failed"
    assert "licen" in done.error.lower()
    assert hosts.boots() == 0


def test_without_reboot_all_of_it_waits(site: Any, trial: Any) -> None:
    hosts = with_arguments(site, machine())
    trial(hosts, "armed")
    done = hosts.apply(reboot=False)["n1"]
    assert (done.state, hosts.boots()) == ("armed", 0)
    assert hosts.waiting() == {VT: "Disabled"}


def test_bios_alone_is_applied_by_the_bmc_and_a_second_apply_leaves_it(site: Any) -> None:
    hosts: ApplySite = site(machine(), kind=ApplySite)
    hosts.policy_data = {"bios": BIOS, "gpu": GPU, "kernel_args": {"present": [], "absent": []}}
    first = hosts.apply()["n1"]
    assert first.state == "applied", first.error
    assert [(one.state, one.resets) for one in first.bios] == [("applied", 1)]
    again = hosts.apply()["n1"]
    assert (again.state, again.bios, hosts.boots()) == ("unchanged", (), 1)


def test_a_host_that_does_not_show_it_is_failed_and_keeps_what_was_asked(site: Any) -> None:
    hosts: ApplySite = site(machine(), kind=ApplySite)
    hosts.policy_data = {"bios": BIOS, "gpu": GPU, "kernel_args": {"present": [], "absent": []}}
    hosts.units = ("dmar0",)
    done = hosts.apply()["n1"]
    assert done.state == "failed"
    assert "still runs dmar0" in done.error
    assert hosts.current()[VT] == "Disabled"


def test_one_hosts_missing_bmc_password_stops_no_other(site: Any, trial: Any, tmp_path: Path) -> None:
    hosts = with_arguments(site, machine(), machine())
    facts = hosts.observe(list(hosts.hosts)).facts
    plans = {host: build_plan(hosts.spec(found), found) for host, found in facts.items()}
    hosts.changes["n2"] = {"user": None}
    tried = trial(hosts, "permanent")
    done = workflow.apply(hosts, plans, workflow.Budget())  # type: ignore[arg-type]
    assert tried == ["n1"]
    assert hosts.current("n1")[VT] == "Disabled"
    assert done["n2"].state == "failed"
    assert "n2.nodeprep_bmc.user: is missing" in done["n2"].error
    assert (hosts.boots("n2"), hosts.waiting("n2")) == (0, {})


def test_a_bug_that_one_bmc_brings_out_is_no_other_hosts(site: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    hosts: ApplySite = site(machine(), machine(), kind=ApplySite)
    hosts.policy_data = {"bios": BIOS, "gpu": GPU, "kernel_args": {"present": [], "absent": []}}
    write = bios_apply.apply

    def stumbling(asked: bios_work.Asked, *more: Any, **options: Any) -> Any:
        if asked.target.host == "n2":
            raise KeyError("Attributes")
        return write(asked, *more, **options)

    monkeypatch.setattr(bios_apply, "apply", stumbling)
    done = hosts.apply()
    assert done["n1"].state == "applied", done["n1"].error
    assert done["n2"].state == "failed"
    assert "KeyError" in done["n2"].error


def test_a_trial_that_began_since_the_plan_costs_no_bios_change(site: Any) -> None:
    hosts: ApplySite = site(machine(), kind=ApplySite)
    hosts.policy_data = {"bios": BIOS, "gpu": GPU, "kernel_args": {"present": [], "absent": []}}
    facts = hosts.observe(["n1"]).facts
    plans = {"n1": build_plan(hosts.spec(facts["n1"]), facts["n1"])}
    hosts.trial = TrialBoot(
        id="t1", phase="armed", cmdline="", booted=False, staged_at="", controller="alice@ctl1", held_s=60
    )
    done = workflow.apply(hosts, plans, workflow.Budget())["n1"]  # type: ignore[arg-type]
    assert done.state == "failed"
    assert "begun by alice@ctl1" in done.error
    assert "in 1 min" in done.hint
    assert (hosts.boots(), hosts.waiting()) == (0, {})
