"""AER counters in a facts document: what is said of those that mean nothing, and that none counts twice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from reading import told

CASES = Path(__file__).parents[2] / "cases" / "diagnose"


def _facts(case: str = "counters_at_zero") -> dict[str, Any]:
    document: dict[str, Any] = json.loads((CASES / case / "inputs" / "facts.json").read_text())
    return document


def _yes() -> dict[str, Any]:
    return {"state": "ok", "value": True, "detail": ""}


@pytest.mark.parametrize(
    ("argument", "words"), [("noaer", "pci=noaer"), ("firmware_first", "firmware handles PCIe errors first")]
)
def test_zeros_that_prove_nothing_are_named_so(argument: str, words: str) -> None:
    document = _facts()
    document["aer_ownership"][argument] = _yes()
    (found,) = told(facts=json.dumps(document)).inputs
    assert [note for note in found.notes if words in note]
    assert not found.gaps


def test_a_bus_that_the_kernel_was_not_given_is_named() -> None:
    document = _facts()
    document["aer_ownership"]["root_bridges"]["value"][0]["controls"]["value"] = []
    (found,) = told(facts=json.dumps(document)).inputs
    assert [note for note in found.notes if "given AER on bus 0000:16" in note]


def test_counters_that_cannot_be_read_are_a_gap_and_those_that_are_not_kept_a_note() -> None:
    document = _facts("counters_unreadable")
    document["pci"]["devices"]["value"][0]["aer"]["fatal"] = {"state": "not_supported", "detail": "no AER"}
    (found,) = told(facts=json.dumps(document)).inputs
    assert found.gaps == ("AER counters (corrected) of 0000:17:00.0 could not be read: Permission denied",)
    assert "no AER counters of 0000:16:01.0: no AER" in found.notes


def test_pci_devices_that_cannot_be_read_are_a_gap() -> None:
    document = _facts()
    document["pci"]["devices"] = {"state": "error", "value": None, "detail": "no sysfs"}
    (found,) = told(facts=json.dumps(document)).inputs
    assert [gap for gap in found.gaps if "the PCI devices are unknown" in gap]


@pytest.mark.parametrize("case", ["counted_and_logged", "counters_at_zero"])
def test_what_the_log_has_or_what_is_zero_makes_no_incident_of_counters(case: str) -> None:
    files = {path.stem: path.read_text() for path in (CASES / case / "inputs").iterdir()}
    roots = [incident.root.event for incident in told(**files).incidents]
    assert not [root for root in roots if root.startswith("aer_counter.")]


def test_without_its_log_the_same_counters_do() -> None:
    found = told(facts=json.dumps(_facts("counted_and_logged")))
    assert sorted(incident.root.event for incident in found.incidents) == [
        "aer_counter.corrected.bad_tlp",
        "aer_counter.nonfatal.completion_timeout",
    ]


def test_facts_of_a_run_folder_are_known_though_their_schema_comes_last() -> None:
    document = _facts("counted_fatal")
    early = {"host": "n1", "collector": {"version": "0.1.0"}, "boot": {str(n): n for n in range(200)}}
    schema = document.pop("schema")
    found = told(facts=json.dumps({**early, **document, "schema": schema}, indent=2))
    assert [each.format for each in found.inputs] == ["node_facts"]
    assert [incident.root.event for incident in found.incidents] == ["aer_counter.fatal.malformed_tlp"]


def test_the_facts_of_several_hosts_are_refused_in_plain_words() -> None:
    several = {"schema": "nodeprep.facts_list/1", "run": {}, "hosts": {"a": _facts(), "b": _facts()}}
    found = told(facts=json.dumps(several))
    (gap,) = found.inputs[0].gaps
    assert gap.startswith("not read: it holds what inspect found on 2 hosts, and a diagnosis is of one")
    assert "facts_list" not in gap
    assert not found.healthy


def test_facts_that_are_cut_off_are_told_so() -> None:
    (found,) = told(facts=json.dumps(_facts())[:-20]).inputs
    assert "its JSON is cut off or broken" in found.gaps
