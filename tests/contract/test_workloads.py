"""The shipped workloads: what the controller offers, what floors rest on, and digests that must not move."""

from __future__ import annotations

import dataclasses
from importlib import resources

import pytest

from nodeprep.checks import probe_performance
from nodeprep.model import probe as document
from nodeprep.model.policy import CertifyPolicy
from nodeprep.node import workload_file
from nodeprep.probe import workload

# Certificates carry these. A change here says that every certificate of that workload is of another one.
DIGESTS = {
    "vit-g": "4aa298d76f30f7421a6945cd0a344b882af1ae04cb207f635d291f95a2c64acd",
    "tiny": "255ed75e36b52ce0b63e21af4b55182de6932a72ec0024cf62faf66667ada7b8",
}


def test_every_shipped_file_has_its_name_and_no_other_lies_there() -> None:
    folder = resources.files("nodeprep") / "node" / "workloads"
    assert {entry.name for entry in folder.iterdir()} == {f"{name}.json" for name in workload_file.SHIPPED}
    for name in workload_file.SHIPPED:
        assert workload_file.faults(workload_file.shipped(name)) == []
        assert workload_file.shipped(name)["name"] == name
    assert CertifyPolicy().workload in workload_file.SHIPPED


@pytest.mark.parametrize("name", DIGESTS)
def test_a_new_key_moves_no_digest(name: str) -> None:
    assert workload.load(name).digest == DIGESTS[name]


def test_the_result_has_every_key_of_a_workload() -> None:
    keys = {field.name for field in dataclasses.fields(workload.Workload)}
    assert keys == set(workload_file.KEYS)
    told = {field.name: field.default for field in dataclasses.fields(document.Workload)}
    assert set(told) == keys | {"digest"}
    for name, key in workload_file.KEYS.items():
        if key.group == "more":
            assert told[name] == key.default, name


def test_floors_are_of_the_default_workload() -> None:
    shape = probe_performance._DEFAULT_SHAPE
    vit = workload_file.shipped("vit-g")
    assert shape == {key: vit[key] for key in shape}
