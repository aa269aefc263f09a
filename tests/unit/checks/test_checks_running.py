"""How a check is run: nothing that goes wrong in it may look like health."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from nodeprep.checks import Check, Context, all_checks, evaluate
from nodeprep.model.reading import Reading, Unreadable
from nodeprep.model.result import CheckResult
from tests.cases.base.documents import context

HEALTHY = context()


def check_of(evaluate_: object) -> Check:
    return Check(id="made_up", title="made up", phase="static", evaluate=evaluate_)  # type: ignore[arg-type]


def test_a_broken_check_is_an_error_and_keeps_what_it_had_found() -> None:
    def broken(_: Context) -> Iterator[CheckResult]:
        yield check.result("FAIL", "0000:63:00.0", "a finding")
        raise ZeroDivisionError("division by zero")

    check = check_of(broken)
    found, error = check.run(HEALTHY)
    assert (found.status, found.reason) == ("FAIL", "a finding")
    assert (error.status, error.subject) == ("ERROR", "node")
    assert "the check itself failed" in error.reason
    assert "division by zero" in error.reason


def test_a_check_that_looks_at_nothing_is_an_error() -> None:
    (result,) = check_of(lambda _: iter(())).run(HEALTHY)
    assert (result.status, result.reason) == ("ERROR", "there was nothing to look at, so nothing is known")


def test_an_unreadable_value_is_an_error_in_its_own_words() -> None:
    def unreadable(_: Context) -> Iterator[CheckResult]:
        Reading.error("permission denied").require("the value")
        yield check.result("PASS", "node", "never reached")

    check = check_of(unreadable)
    (result,) = check.run(HEALTHY)
    assert (result.status, result.reason) == ("ERROR", "the value is unreadable: permission denied")


def test_on_keeps_an_error_to_its_subject_and_names_the_evidence() -> None:
    check = check_of(lambda _: iter(()))

    def judge(good: bool) -> CheckResult:
        if not good:
            raise Unreadable("the ECC mode is unreadable: lost")
        return check.result("PASS", "b", "fine", evidence=("facts.before#/own",))

    bad = check.on("a", "facts.before#/where", judge, False)
    assert (bad.status, bad.subject, bad.evidence) == ("ERROR", "a", ("facts.before#/where",))
    assert bad.reason == "the ECC mode is unreadable: lost"
    assert check.on("b", "facts.before#/where", judge, True).evidence == ("facts.before#/own",)


def test_on_does_not_hide_a_bug() -> None:
    def judge() -> CheckResult:
        raise TypeError("a bug")

    with pytest.raises(TypeError):
        check_of(lambda _: iter(())).on("a", "where", judge)


def test_evaluate_runs_every_check_once_in_order() -> None:
    results = evaluate(HEALTHY)
    ids = list(dict.fromkeys(result.id for result in results))
    assert ids == list(all_checks()) == sorted(all_checks())


def test_a_healthy_node_passes_everything_it_is_asked_for() -> None:
    others = [(result.id, result.status) for result in evaluate(HEALTHY) if result.status != "PASS"]
    # No BIOS knob is asked for, nothing is known of other nodes' bits, and the level is no soak.
    assert others == [("bios_settings", "SKIPPED"), ("probe_bitwise", "SKIPPED"), ("soak_gaps", "SKIPPED")]


def test_phases_choose_the_checks() -> None:
    static = {result.id for result in evaluate(HEALTHY, ("static",))}
    load = {result.id for result in evaluate(HEALTHY, ("load",))}
    assert static == {check.id for check in all_checks().values() if check.phase == "static"}
    assert load == {check.id for check in all_checks().values() if check.phase == "load"}
    assert evaluate(HEALTHY, ()) == ()


def test_a_dead_nvml_leaves_no_gpu_check_passing() -> None:
    hung = context(facts={"/nvml/gpus": "error: NVML hung in nvmlInit_v2"})
    about_gpus = {"ecc_on", "ecc_uncorrected", "fabric", "mig_off", "nvlinks", "persistence", "power_limit"}
    statuses = {
        r.id: r.status for r in evaluate(hung) if r.id in about_gpus | {"recovery_action", "row_remap"}
    }
    assert set(statuses.values()) == {"ERROR"}


def test_a_virtual_machine_is_unknown_where_the_port_counts() -> None:
    guest = context(facts={"/cpu/hypervisor": True})
    unknown = {result.id for result in evaluate(guest) if result.status == "ERROR"}
    assert unknown == {"aer_owned", "aer_quiet_load", "aspm_off"}
    assert not [result for result in evaluate(guest) if result.status == "FAIL"]
