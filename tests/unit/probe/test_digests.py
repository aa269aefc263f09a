"""Comparison with the reference."""

from __future__ import annotations

import pytest

from nodeprep.model.golden import place_of
from nodeprep.probe.digests import KEPT, Comparison, Findings, block_of


def test_the_first_iteration_is_the_reference_and_no_comparison():
    comparison = Comparison(1)
    assert comparison.see(1, ["a", "b"], 5) is None
    assert comparison.references == {5: ("a", "b")}
    assert comparison.compared == 0


def test_equal_iterations_are_counted():
    comparison = Comparison(1)
    for number in (1, 2, 3):
        assert comparison.see(number, ["a", "b"], 5) is None
    assert comparison.compared == 2


def test_the_first_differing_block_is_named_and_the_reference_stays():
    comparison = Comparison(2)
    comparison.see(1, ["a", "b", "c"], 5)
    found = comparison.see(2, ["a", "x", "y"], 5)
    assert found is not None
    assert found.document() == {
        "iteration": 2,
        "block": 1,
        "expected": "b",
        "got": "x",
        "confirmed": None,
        "part": "output",
        "batch": 5,
    }
    assert comparison.see(3, ["a", "b", "c"], 5) is None


def test_each_batch_size_has_a_reference_of_its_own():
    comparison = Comparison(1)
    assert comparison.see(1, ["a", "b"], 1) is None
    assert comparison.see(2, ["c", "d"], 8) is None
    assert comparison.compared == 0
    assert comparison.see(3, ["a", "b"], 1) is None
    found = comparison.see(4, ["c", "x"], 8)
    assert found is not None
    assert (found.block, found.batch, found.expected) == (1, 8, "d")
    assert comparison.compared == 2


@pytest.mark.parametrize(
    ("place", "block"),
    [
        (0, (0, "output")),
        (2, (2, "output")),
        # Three blocks, the final output, weights of blocks and embedding, gradients from the last block back.
        (3, (3, "output")),
        (4, (0, "weights")),
        (7, (3, "weights")),
        (8, (2, "gradient")),
        (10, (0, "gradient")),
    ],
)
def test_gradients_are_told_from_the_last_block_back(place, block):
    assert block_of(place, 3) == block


def test_the_cause_is_named_before_its_consequences():
    comparison = Comparison(2)
    comparison.see(1, ["o0", "o1", "final", "w0", "w1", "we"], 1)
    found = comparison.see(2, ["o0", "x1", "xfinal", "w0", "x", "we"], 1)
    assert found is not None
    assert (found.block, found.part, found.place) == (1, "weights", 4)


def test_both_sides_name_places_alike():
    for depth in (1, 3, 16):
        for place in range(3 * depth + 2):
            assert place_of(*block_of(place, depth), depth) == place


def test_a_hundred_are_kept_and_all_are_counted():
    findings = Findings()
    for number in range(250):
        findings.add({"iteration": number})
    assert findings.count == 250
    assert [kept["iteration"] for kept in findings.kept] == list(range(KEPT))
