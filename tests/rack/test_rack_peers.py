"""Nodes with eight GPUs, whose ranks are processes of the CPU: what they do together decides the verdict."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from node_side import certify_node

from nodeprep.model.probe_peers import Peers
from nodeprep.probe.peers.stage import TRANSPORT_VARIABLE
from nodeprep.sim.conclusion import disagreements
from nodeprep.sim.rack import RackNode

SECONDS = "0.8"


def peers(told: object) -> Peers:
    return told.probe.peers.require("what the GPUs did together")  # type: ignore[attr-defined]


def test_a_healthy_node_of_eight_is_certified_with_all_its_pairs(
    make_node: Callable[..., RackNode], tmp_path: Path
) -> None:
    node = make_node(gpus=8)
    told = certify_node(node, tmp_path / "probe", "--duration-s", SECONDS)
    assert disagreements(node.conclusion, told.certificate) == ()
    found = peers(told)
    assert len(found.gpus) == 8
    assert len(found.pairs) == 56
    assert [each.kind for each in found.rounds] == ["alone"] * 8 + ["numa"] * 2 + ["all"]
    passed = {result.id for result in told.certificate.checks if result.status == "PASS"}
    together = {"p2p_content", "p2p_bandwidth", "all_reduce", "pcie_contention", "gpu_spread"}
    assert together | {"nvlink_errors_load"} <= passed


def test_the_one_of_eight_that_hangs_is_named(make_node: Callable[..., RackNode], tmp_path: Path) -> None:
    node = make_node("rank_hangs", gpu=5, gpus=8)
    told = certify_node(node, tmp_path / "probe", "--duration-s", SECONDS)
    assert disagreements(node.conclusion, told.certificate) == ()
    (reason,) = told.certificate.reasons
    assert f"rank 5 (GPU {node.machine.gpu_address(5)}) did not arrive" in reason
    assert "7 of 8 ranks waited for it" in reason


def test_a_node_with_one_gpu_is_certified_and_says_that_it_has_no_peers(
    make_node: Callable[..., RackNode], tmp_path: Path
) -> None:
    node = make_node(gpu=0, gpus=1)
    told = certify_node(node, tmp_path / "probe", "--duration-s", SECONDS)
    assert disagreements(node.conclusion, told.certificate) == ()
    skipped = {result.id: result.reason for result in told.certificate.checks if result.status == "SKIPPED"}
    assert "single GPU" in skipped["all_reduce"]
    assert "single GPU" in skipped["p2p_content"]


def test_a_hang_that_was_asked_for_never_certifies(
    make_node: Callable[..., RackNode], tmp_path: Path
) -> None:
    node = make_node(gpus=2)
    told = certify_node(node, tmp_path / "probe", "--duration-s", SECONDS, "--inject", "hang:rank=1")
    assert told.probe is not None
    assert told.probe.injected == "hang:rank=1"
    assert told.certificate.verdict != "certified"
    assert [rank.rank for rank in peers(told).all_reduce.hung] == [1]


@pytest.mark.torch
def test_eight_ranks_join_in_gloo(
    make_node: Callable[..., RackNode], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch", reason="PyTorch is not installed; pip install torch to run this")
    monkeypatch.setenv(TRANSPORT_VARIABLE, "gloo")
    node = make_node(gpus=8)
    told = certify_node(node, tmp_path / "probe", "--duration-s", SECONDS)
    assert disagreements(node.conclusion, told.certificate) == ()
    assert peers(told).all_reduce.transport == "gloo"
    # The figures are modelled, whatever carried the data.
    assert peers(told).all_reduce.sizes.require("sizes")[-1].bus_gbps == pytest.approx(369.0)
