"""The controller never imports the probe, so what both must know of the shipped workloads is tied here."""

from __future__ import annotations

from nodeprep.checks import probe_performance
from nodeprep.model.policy import CertifyPolicy
from nodeprep.probe.workloads import SHIPPED as ON_THE_NODE
from nodeprep.workflows.workloads import SHIPPED


def test_the_controller_offers_what_the_probe_has() -> None:
    assert set(SHIPPED) == set(ON_THE_NODE)
    assert CertifyPolicy().workload in ON_THE_NODE


def test_floors_are_of_the_default_workload() -> None:
    shape = probe_performance._DEFAULT_SHAPE
    assert shape == {key: ON_THE_NODE["vit-g"][key] for key in shape}
