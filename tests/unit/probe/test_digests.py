"""Comparison with the reference."""

from __future__ import annotations

from nodeprep.probe.digests import KEPT, Comparison, Findings


def test_the_first_iteration_is_the_reference_and_no_comparison():
    comparison = Comparison()
    assert comparison.see(1, ["a", "b"]) is None
    assert comparison.reference == ("a", "b")
    assert comparison.compared == 0


def test_equal_iterations_are_counted():
    comparison = Comparison()
    for number in (1, 2, 3):
        assert comparison.see(number, ["a", "b"]) is None
    assert comparison.compared == 2


def test_the_first_differing_block_is_named_and_the_reference_stays():
    comparison = Comparison()
    comparison.see(1, ["a", "b", "c"])
    found = comparison.see(2, ["a", "x", "y"])
    assert found is not None
    assert found.document() == {
        "iteration": 2,
        "block": 1,
        "expected": "b",
        "got": "x",
        "confirmed": None,
    }
    assert comparison.see(3, ["a", "b", "c"]) is None


def test_a_hundred_are_kept_and_all_are_counted():
    findings = Findings()
    for number in range(250):
        findings.add({"iteration": number})
    assert findings.count == 250
    assert [kept["iteration"] for kept in findings.kept] == list(range(KEPT))
