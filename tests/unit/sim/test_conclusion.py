"""A certificate agrees with a conclusion only when verdict and every reason do."""

from __future__ import annotations

import dataclasses

import pytest
from certificate_builder import certificate, result

from nodeprep.model.result import CheckResult
from nodeprep.sim.conclusion import HEALTHY, Cause, Conclusion, disagreements

GPU = "0000:17:00.0"
REJECTED = Conclusion(
    verdict="rejected",
    causes=(Cause(status="FAIL", check="probe_bitwise", subject=GPU, says=("block 7",)),),
)


def test_a_healthy_node_is_certified_for_no_reason() -> None:
    assert disagreements(HEALTHY, certificate("certified", result("PASS", "gpu_presence"))) == ()


def test_skipped_checks_are_no_reason() -> None:
    assert disagreements(HEALTHY, certificate("certified", result("SKIPPED", "fabric_complete"))) == ()


def test_the_right_verdict_for_the_right_reason() -> None:
    told = certificate("rejected", result("FAIL", "probe_bitwise", GPU, "Block 7 differed in iteration 3"))
    assert disagreements(REJECTED, told) == ()


@pytest.mark.parametrize(
    ("bad", "expected"),
    [
        (result("FAIL", "probe_bitwise", GPU, "block 9 differed"), "missing reason"),
        (result("FAIL", "probe_bitwise", "0000:65:00.0", "block 7 differed"), "missing reason"),
        (result("ERROR", "probe_bitwise", GPU, "block 7 differed"), "missing reason"),
        (result("FAIL", "gpu_presence", GPU, "block 7 differed"), "missing reason"),
    ],
    ids=["other block", "other GPU", "error instead of fail", "other check"],
)
def test_the_right_verdict_for_a_wrong_reason_disagrees(bad: CheckResult, expected: str) -> None:
    found = disagreements(REJECTED, certificate("rejected", bad))
    assert any(line.startswith(expected) for line in found)
    assert any(line.startswith(f"unexpected {bad.status} of {bad.id} on {bad.subject}") for line in found)


def test_a_second_reason_disagrees() -> None:
    told = certificate(
        "rejected",
        result("FAIL", "probe_bitwise", GPU, "block 7"),
        result("FAIL", "ecc_enabled", "0000:65:00.0", "ECC is off"),
    )
    assert disagreements(REJECTED, told) == ("unexpected FAIL of ecc_enabled on 0000:65:00.0: ECC is off",)


def test_a_consequence_may_be_there_or_not() -> None:
    may = Cause(status="FAIL", check="probe_floor", subject=GPU, required=False)
    conclusion = dataclasses.replace(REJECTED, causes=(*REJECTED.causes, may))
    main = result("FAIL", "probe_bitwise", GPU, "block 7")
    assert disagreements(conclusion, certificate("rejected", main)) == ()
    assert disagreements(conclusion, certificate("rejected", main, result("FAIL", "probe_floor", GPU))) == ()


def test_a_healthy_verdict_on_a_broken_node_disagrees() -> None:
    found = disagreements(REJECTED, certificate("certified", result("PASS", "probe_bitwise", GPU)))
    assert found[0] == "verdict is certified, must be rejected"
    assert found[1].startswith("missing reason: FAIL of probe_bitwise")


def test_a_certificate_that_hides_the_simulation_disagrees() -> None:
    told = certificate("certified", result("PASS", "gpu_presence"), simulated=False)
    assert disagreements(HEALTHY, told) == ("the certificate does not say that the node is simulated",)


def test_a_certificate_without_checks_disagrees() -> None:
    assert disagreements(HEALTHY, certificate("certified")) == ("the certificate holds no check results",)


def test_a_pattern_of_checks() -> None:
    hung = Conclusion(verdict="inconclusive", causes=(Cause(status="ERROR", check="*", says=("hung",)),))
    told = certificate(
        "inconclusive",
        result("ERROR", "ecc_enabled", "node", "NVML is unreadable: NVML hung in nvmlInit"),
        result("ERROR", "gpu_presence", "node", "NVML hung"),
    )
    assert disagreements(hung, told) == ()


def test_a_reason_that_no_check_gave_disagrees_unless_it_was_foreseen() -> None:
    gap = "the node was not loaded: NVML hung in nvmlInit"
    check = result("ERROR", "gpu_presence", "nvml", "NVML hung")
    told = certificate("inconclusive", check, reasons=("gpu_presence nvml: NVML hung", gap))
    cause = Cause(status="ERROR", check="gpu_presence", says=("hung",))
    hung = Conclusion(verdict="inconclusive", causes=(cause,))
    assert disagreements(hung, told) == (f"unexpected reason: {gap}",)
    assert disagreements(dataclasses.replace(hung, gaps=("hung",)), told) == ()
