"""What GPUs did together, over the legs of a soak: a clean last leg makes nothing good."""

from __future__ import annotations

import copy

import pytest

from nodeprep.node import reading
from nodeprep.probe import soak_peers

STATE = {"links": 18, "active": reading.ok(18), "counters": [{"name": "replays", "count": reading.ok(0)}]}
PAIR = {
    "source": "a",
    "target": "b",
    "access": reading.ok(True),
    "nvlinks": reading.ok(18),
    "gbps": reading.ok(370.0),
    "both_ways_gbps": reading.ok(700.0),
    "content_checks": 4,
    "content_errors": 0,
}
LEG = {
    "gpus": ["a", "b"],
    "topology": reading.ok(1),
    "rounds": [
        {
            "kind": "all",
            "at": "",
            "gpus": ["a", "b"],
            "h2d": [reading.ok(50.0)] * 2,
            "d2h": [reading.ok(50.0)] * 2,
        }
    ],
    "pairs": [PAIR],
    "nvlinks": [{"gpu": "a", "before": reading.ok(STATE), "after": reading.ok(copy.deepcopy(STATE))}],
    "all_reduce": {"sizes": reading.ok([{"bus_gbps": 400.0, "wrong_elements": 0}]), "hung": []},
}


@pytest.fixture
def legs():
    return [copy.deepcopy(LEG) for _ in range(3)]


def merged(legs):
    return soak_peers.merge([reading.ok(leg) for leg in legs])["value"]


def test_legs_without_a_fault_are_as_the_last_but_for_their_counts(legs):
    assert merged(legs) == {**LEG, "pairs": [{**PAIR, "content_checks": 12}]}


def test_a_fault_of_an_earlier_leg_stays(legs):
    legs[1]["pairs"][0].update(content_errors=1, gbps=reading.ok(90.0))
    legs[1]["rounds"][0]["h2d"][1] = reading.ok(7.0)
    legs[0]["all_reduce"]["sizes"]["value"][0]["wrong_elements"] = 5
    legs[1]["nvlinks"][0]["after"]["value"]["active"] = reading.ok(17)
    found = merged(legs)
    assert (found["pairs"][0]["content_errors"], found["pairs"][0]["gbps"]["value"]) == (1, 90.0)
    assert [rate["value"] for rate in found["rounds"][0]["h2d"]] == [50.0, 7.0]
    assert found["all_reduce"]["sizes"]["value"][0]["wrong_elements"] == 5
    assert found["nvlinks"][0]["after"]["value"]["active"]["value"] == 17


def test_a_rank_that_hung_and_a_pair_that_nobody_compared_stay(legs):
    legs[0]["all_reduce"]["hung"] = [{"rank": 1, "gpu": "b"}]
    legs[0]["pairs"][0]["content_checks"] = 0
    found = merged(legs)
    assert found["all_reduce"]["hung"] == [{"rank": 1, "gpu": "b"}]
    assert found["pairs"][0]["content_checks"] == 0


def test_a_leg_that_lost_a_gpu_is_not_made_good(legs):
    legs[1]["gpus"] = ["a"]
    assert merged(legs)["gpus"] == ["a"]


def test_a_leg_that_measured_nothing_is_not_made_good(legs):
    found = soak_peers.merge([reading.error("stopped"), reading.ok(legs[0])])
    assert found == reading.error("stopped")
