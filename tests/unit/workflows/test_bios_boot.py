"""BIOS changes in step with boots, over Redfish to simulated BMCs whose time runs fast."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from nodeprep.bmc.redfish.patience import Clock
from nodeprep.fleet import Outcome, Target
from nodeprep.model.bios import BiosFacts
from nodeprep.model.policy import BiosPolicy, Policy
from nodeprep.sim.bmc import SimulatedBmc, Tls, serving, tls_in
from nodeprep.sim.bmc_trees import MAKES, bmc_tree
from nodeprep.workflows.bios_back import BiosBack
from nodeprep.workflows.bios_boot import BiosWork
from nodeprep.workflows.bios_facts import read_bios
from nodeprep.workflows.home import Home

SECRET = "Bmc-Word_6113"
HURRY = 20.0
WANTED = {"iommu": "disabled", "aspm": "disabled"}
POLICY = Policy(bios=BiosPolicy(iommu="disabled", aspm="disabled"))
VT = "ProcVirtualization"


class FastClock(Clock):
    """A second of it is a twentieth of one."""

    def now(self) -> float:
        return time.monotonic() * HURRY

    def wait(self, seconds: float) -> None:
        super().wait(seconds / HURRY)


def machine(make: str = "dell", faults: Sequence[str] = ()) -> SimulatedBmc:
    return SimulatedBmc(
        bmc_tree(MAKES[make], serial="SIM1"), user="admin", password=SECRET, faults=faults,
        clock=lambda: time.monotonic() * HURRY, post_s=20.0,
    )  # fmt: skip


@dataclass
class Site:
    """Hosts with a BMC each, and what a session is asked for."""

    home: Home
    tls: Tls
    hosts: dict[str, SimulatedBmc]
    ports: dict[str, int]
    changes: dict[str, dict[str, Any]] = field(default_factory=dict)
    local: bool = False

    def __post_init__(self) -> None:
        self.bios: dict[str, BiosFacts] = {}
        self.records: list[tuple[str, str, str]] = []
        self.said: list[str] = []
        self.waited_for: list[str] = []
        self.fleet = SimpleNamespace(run=self._run)

    def pick(self, hosts: Sequence[str]) -> tuple[Target, ...]:
        return tuple(Target(host, {"nodeprep_bmc": self._access(host)}, local=self.local) for host in hosts)

    def _access(self, host: str) -> dict[str, Any]:
        access = {
            "protocol": "redfish", "address": "127.0.0.1", "port": self.ports[host], "user": "admin",
            "fingerprint": self.tls.fingerprint,
        }  # fmt: skip
        changed = access | self.changes.get(host, {})
        return {key: value for key, value in changed.items() if value is not None}

    def policy(self, _host: str) -> Policy:
        return POLICY

    def make_clock(self, stop: threading.Event) -> Clock:
        return FastClock(stop)

    def notify(self, event: Any) -> None:
        self.said.append(event.message)

    def record(self, host: str, phase: str, state: str, **_more: Any) -> None:
        self.records.append((host, phase, state))

    def _run(self, playbook: str, targets: Sequence[Target], **_more: Any) -> dict[str, Outcome]:
        assert playbook == "return.yml"
        self.waited_for += [target.host for target in targets]
        return {target.host: Outcome(target.host, "done", {}, "", "") for target in targets}

    # What a test asks

    def look(self) -> dict[str, Any]:
        found = read_bios(
            self.pick(list(self.hosts)), dict.fromkeys(self.hosts, POLICY), make_clock=self.make_clock
        )
        self.bios = {host: one.value for host, one in found.items() if one.value is not None}
        return found

    def work(self, *, reboot: bool = True, wanted: Mapping[str, str] | None = None) -> BiosWork:
        return BiosWork(self, dict.fromkeys(self.hosts, wanted or WANTED), reboot=reboot)  # type: ignore[arg-type]

    def current(self, host: str = "n1") -> dict[str, Any]:
        self.hosts[host].state.advance()
        return dict(self.hosts[host].state.settings.current)

    def waiting(self, host: str = "n1") -> dict[str, Any]:
        self.hosts[host].state.advance()
        return dict(self.hosts[host].state.settings.waiting)

    def boots(self, host: str = "n1") -> int:
        return self.hosts[host].state.host.boots_begun

    def os_reboot(self, host: str = "n1") -> None:
        """The operating system restarts itself, as a trial boot makes it; it answers after POST."""
        self.hosts[host].state.host.reset("ForceRestart")
        while self.hosts[host].state.host.in_post:
            time.sleep(0.02)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Any]:
    """Serves machines; the first one is n1."""
    with ExitStack() as stack:

        def make(*machines: SimulatedBmc, **more: Any) -> Site:
            tls = tls_in(tmp_path / "tls")
            served = stack.enter_context(serving(machines, tls=tls))
            names = [f"n{number}" for number in range(1, len(machines) + 1)]
            return Site(
                Home(tmp_path / "home"), tls, dict(zip(names, machines, strict=True)),
                {name: one.port for name, one in zip(names, served, strict=True)}, **more,
            )  # fmt: skip

        yield make


@pytest.fixture(autouse=True)
def password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NODEPREP_BMC_PASSWORD", SECRET)


# Reading


def test_one_bad_bmc_costs_its_own_host_an_error_and_no_other(site: Any, tmp_path: Path) -> None:
    hosts = site(machine(), machine("hpe"), machine(), machine(faults=("hang",)))
    hosts.changes = {
        "n2": {"fingerprint": "0" * 64},
        "n3": {"user": "somebody"},
    }
    hosts.hosts["n5"], hosts.ports["n5"] = machine(), 1
    hosts.hosts["n6"], hosts.ports["n6"] = machine(), hosts.ports["n1"]
    hosts.changes["n6"] = {"adress": "10.0.0.1"}
    found = hosts.look()
    assert {host: one.state for host, one in found.items()} == {
        "n1": "ok", "n2": "error", "n3": "error", "n4": "error", "n5": "error", "n6": "error",
    }  # fmt: skip
    assert "certificate" in found["n2"].detail
    assert "did you mean address?" in found["n6"].detail
    assert all(one.detail for host, one in found.items() if host != "n1")
    assert not any(SECRET in one.detail for one in found.values())


def test_what_a_look_tells(site: Any) -> None:
    bios = site(machine()).look()["n1"].value
    assert (bios.bmc.vendor, bios.serial, bios.simulated) == ("dell", "SIM1", True)
    assert bios.answer("iommu", "disabled").status == "change"
    assert bios.answer("iommu", "enabled") is None
    assert {one.knob: one.value for one in bios.knobs if one.found}["iommu"] == "enabled"


def test_a_missing_password_is_an_error_and_ipmi_has_no_bios(
    site: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    hosts = site(machine(), machine())
    monkeypatch.delenv("NODEPREP_BMC_PASSWORD")
    hosts.changes["n2"] = {"protocol": "ipmi", "fingerprint": None}
    found = hosts.look()
    assert (found["n1"].state, found["n2"].state) == ("error", "not_supported")
    assert "password is not given" in found["n1"].detail


# Changing


def test_a_host_without_trial_is_reset_once_by_its_bmc_and_waited_for(site: Any) -> None:
    hosts = site(machine())
    work = hosts.work()
    work.bring_into_effect(["n1"])
    assert not work.failed("n1"), work.failure("n1")
    assert hosts.current()[VT] == "Disabled"
    assert hosts.boots() == 1
    assert work.was_reset("n1")
    assert hosts.waited_for == ["n1"]


def test_settings_ride_along_with_the_reboot_of_a_trial(site: Any) -> None:
    hosts = site(machine())
    work = hosts.work()
    work.stage(["n1"])
    assert (hosts.current()[VT], hosts.boots()) == ("Enabled", 0)
    hosts.os_reboot()
    work.settle({"n1": "permanent"})
    assert not work.failed("n1"), work.failure("n1")
    assert (hosts.current()[VT], hosts.boots()) == ("Disabled", 1)
    assert not work.was_reset("n1")
    assert hosts.waited_for == []


@pytest.mark.parametrize("state", ["rolled_back", "lost", "unsettled"])
def test_a_trial_that_ended_badly_takes_the_bios_back(site: Any, state: Any) -> None:
    hosts = site(machine("lenovo"))
    before = hosts.current()
    work = hosts.work()
    work.stage(["n1"])
    hosts.os_reboot()
    assert hosts.current() != before
    work.settle({"n1": state})
    assert hosts.current() == before
    assert "the BIOS is as before" in work.failure("n1")[0]
    assert hosts.waited_for == ["n1"]


def test_a_trial_that_never_booted_is_unstaged_without_a_reset(site: Any) -> None:
    hosts = site(machine())
    before = hosts.current()
    work = hosts.work()
    work.stage(["n1"])
    work.settle({"n1": "refused"})
    hosts.os_reboot()
    assert hosts.current() == before
    assert hosts.boots() == 1
    assert not work.was_reset("n1")


def test_an_armed_trial_leaves_everything_to_the_next_boot(site: Any) -> None:
    hosts = site(machine())
    work = hosts.work(reboot=False)
    work.stage(["n1"])
    work.settle({"n1": "armed"})
    assert not work.failed("n1")
    assert (hosts.waiting().get(VT), hosts.boots()) == ("Disabled", 0)


def test_what_post_drops_is_a_failure_and_leaves_the_bios_as_it_was(site: Any) -> None:
    hosts = site(machine(faults=("silent_drop",)))
    before = hosts.current()
    work = hosts.work()
    work.bring_into_effect(["n1"])
    assert work.failed("n1")
    assert "the BIOS is as before" in work.failure("n1")[0]
    assert hosts.current() == before
    assert hosts.waiting() == {}


def test_a_licence_that_is_missing_fails_without_a_reset(site: Any) -> None:
    hosts = site(machine("supermicro", faults=("licence",)), machine())
    work = hosts.work()
    work.bring_into_effect(["n1", "n2"])
    assert "licen" in work.failure("n1")[0].lower()
    assert hosts.boots("n1") == 0
    assert not work.failed("n2")
    assert hosts.current("n2")[VT] == "Disabled"
    assert ("n1", "bios", "failed") in hosts.records


def test_this_machine_is_never_reset_but_a_simulated_host_on_it_is(site: Any) -> None:
    hosts = site(machine(), local=True)
    unknown = hosts.work()
    unknown.bring_into_effect(["n1"])
    assert (hosts.waiting().get(VT), hosts.boots()) == ("Disabled", 0)
    hosts.look()
    known = hosts.work()
    known.bring_into_effect(["n1"])
    assert (hosts.current()[VT], hosts.boots()) == ("Disabled", 1)


# Back


def test_a_rollback_brings_the_bios_back_with_one_reset(site: Any) -> None:
    hosts = site(machine("ami"))
    before = hosts.current()
    hosts.look()
    hosts.work().bring_into_effect(["n1"])
    assert hosts.current() != before
    back = BiosBack(hosts, ["n1"], reboot=True)
    back.stage()
    assert hosts.boots() == 1
    back.finish()
    assert hosts.current() == before
    assert hosts.boots() == 2
    assert BiosBack(hosts, ["n1"], reboot=True).hosts == ()


def test_a_rollback_rides_along_with_the_reboot_for_old_arguments(site: Any) -> None:
    hosts = site(machine())
    hosts.look()
    hosts.work().bring_into_effect(["n1"])
    back = BiosBack(hosts, ["n1"], reboot=True)
    back.stage()
    hosts.os_reboot()
    back.finish()
    assert (hosts.current()[VT], hosts.boots()) == ("Enabled", 2)
