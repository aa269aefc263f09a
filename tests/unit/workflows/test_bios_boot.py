"""BIOS changes in step with boots, over Redfish to simulated BMCs whose time runs fast."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from bios_site import POLICY, SECRET, VT, machine

from nodeprep.errors import PolicyError
from nodeprep.model.outputs import Rollback
from nodeprep.workflows.bios_back import BiosBack
from nodeprep.workflows.bios_facts import read_bios
from nodeprep.workflows.bios_many import ask_all
from nodeprep.workflows.home import Home

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


def test_a_password_of_the_inventory_opens_the_bmc(site: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    hosts = site(machine(), machine())
    monkeypatch.delenv("NODEPREP_BMC_PASSWORD")
    given = {"n1": SECRET, "n2": 4711}
    targets = [replace(target, secret=given[target.host]) for target in hosts.pick(["n1", "n2"])]
    found = read_bios(targets, dict.fromkeys(given, POLICY), make_clock=hosts.make_clock)
    assert (found["n1"].state, found["n2"].state) == ("ok", "error")
    assert "is not text" in found["n2"].detail
    plans = ask_all(targets, lambda bmc, _connect: bmc.password == SECRET)
    assert plans["n1"] is True
    assert isinstance(plans["n2"], PolicyError)


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
    assert "the BIOS" not in work.failure("n1")[0], "there is nothing to take back"
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
    back = BiosBack(hosts, ["n1"], unread={}, reboot=True)
    back.stage()
    assert hosts.boots() == 1
    back.finish()
    assert hosts.current() == before
    assert hosts.boots() == 2
    assert not any("earlier reset" in words for words in hosts.said), "that of apply is over"
    assert BiosBack(hosts, ["n1"], unread={}, reboot=True).hosts == ()


def test_a_rollback_rides_along_with_the_reboot_for_old_arguments(site: Any) -> None:
    hosts = site(machine())
    hosts.look()
    hosts.work().bring_into_effect(["n1"])
    back = BiosBack(hosts, ["n1"], unread={}, reboot=True)
    back.stage()
    hosts.os_reboot()
    back.finish()
    assert (hosts.current()[VT], hosts.boots()) == ("Enabled", 2)


def test_a_bmc_that_is_silent_at_the_rollback_is_a_failure_once_any_bios_was_changed(site: Any) -> None:
    hosts = site(machine())
    hosts.look()
    nothing = Rollback(
        host="n2", simulated=True, state="nothing", restored=(), cmdline_before="", cmdline_after=""
    )
    unread = {"n2": "the BMC does not answer"}
    assert BiosBack(hosts, [], unread=unread, reboot=True).on(nothing) == nothing
    hosts.work().bring_into_effect(["n1"])
    told = BiosBack(hosts, [], unread=unread, reboot=True).on(nothing)
    assert (told.state, told.hint != "") == ("failed", True)
    assert "does not answer" in told.error


# Held by another controller


def test_a_trial_that_another_controller_took_over_costs_no_reset(site: Any) -> None:
    hosts = site(machine())
    work = hosts.work(obstacle=lambda host: f"a trial boot of alice@ctl1 is under way on {host}")
    work.stage(["n1"])
    hosts.os_reboot()
    work.settle({"n1": "unsettled"})
    assert (hosts.boots(), work.was_reset("n1")) == (1, False)
    assert hosts.waiting().get(VT) == "Enabled"
    assert (
        "from the next reset on, which is left to others: a trial boot of alice@ctl1" in work.failure("n1")[0]
    )


def test_a_rollback_that_the_node_refused_for_another_controller_costs_no_reset(site: Any) -> None:
    hosts = site(machine())
    hosts.look()
    hosts.work().bring_into_effect(["n1"])
    held: dict[str, str] = {}
    back = BiosBack(hosts, ["n1"], unread={}, reboot=True, obstacle=lambda host: held.get(host, ""))
    back.stage()
    held["n1"] = "a trial boot of alice@ctl1 is under way"
    back.finish()
    assert (hosts.boots(), hosts.waiting().get(VT)) == (1, "Enabled")
    assert hosts.waited_for == ["n1"], "that of apply alone"


def test_a_trial_that_began_since_the_plan_costs_its_host_no_bios_change(site: Any) -> None:
    hosts = site(machine(), machine())
    asked: list[list[str]] = []

    def look(due: Any) -> Any:
        asked.append(list(due))
        return {"n1": ("a trial boot of alice@ctl1 is under way", "wait until it is over")}

    work = hosts.work(look=look)
    work.bring_into_effect(["n1", "n2"])
    assert asked == [["n1", "n2"]]
    assert work.failure("n1") == ("a trial boot of alice@ctl1 is under way", "wait until it is over")
    assert (hosts.boots("n1"), hosts.waiting("n1")) == (0, {})
    assert ("n1", "bios", "failed") in hosts.records
    assert not work.failed("n2")
    assert hosts.current("n2")[VT] == "Disabled"


def test_after_trials_that_are_over_their_hosts_are_asked_anew_and_silent_lost_ones_are_not(
    site: Any,
) -> None:
    hosts = site(machine(), machine())
    asked: list[list[str]] = []
    held: dict[str, str] = {}

    def look(due: Any) -> Any:
        asked.append(list(due))
        held.update(dict.fromkeys(due, "a trial boot of alice@ctl1 is under way"))
        return {host: (words, "") for host, words in held.items()}

    work = hosts.work(look=look, obstacle=lambda host: held.get(host, ""))
    work.stage(["n1", "n2"])
    hosts.os_reboot("n1")
    work.settle({"n1": "rolled_back", "n2": "lost"})
    assert asked == [["n1"]]
    assert (hosts.boots("n1"), hosts.waiting("n1").get(VT)) == (1, "Enabled")
    assert "left to others: a trial boot of alice@ctl1" in work.failure("n1")[0]


def test_nobody_is_asked_where_no_reset_is_due(site: Any) -> None:
    hosts = site(machine())
    asked: list[list[str]] = []

    def look(due: Any) -> Any:
        asked.append(list(due))
        return {}

    hosts.work(reboot=False, look=look).bring_into_effect(["n1"])
    assert asked == [[]]
    assert hosts.waiting().get(VT) == "Disabled"


def test_a_trial_that_began_during_a_rollback_costs_no_reset_and_is_told(site: Any) -> None:
    hosts = site(machine())
    hosts.look()
    hosts.work().bring_into_effect(["n1"])
    held = {"n1": ("a trial boot of alice@ctl1 is under way", "wait until it is over")}
    back = BiosBack(hosts, ["n1"], unread={}, reboot=True, look=lambda _: held)
    back.stage()
    back.finish()
    assert (hosts.boots(), hosts.waiting().get(VT)) == (1, "Enabled")
    rolled = Rollback(
        host="n1", simulated=True, state="nothing", restored=(), cmdline_before="", cmdline_after=""
    )
    told = back.on(rolled)
    assert (told.state, told.error, told.hint) == ("failed", *held["n1"])


def test_a_home_that_cannot_be_written_changes_no_bios(site: Any, tmp_path: Path) -> None:
    hosts = site(machine())
    before = hosts.current()
    in_the_way = tmp_path / "file"
    in_the_way.write_text("")
    hosts.home = Home(in_the_way / "home")
    work = hosts.work()
    work.bring_into_effect(["n1"])
    assert "cannot write" in work.failure("n1")[0]
    assert "NODEPREP_HOME" in work.failure("n1")[1]
    assert (hosts.current(), hosts.waiting(), hosts.boots()) == (before, {}, 0)
