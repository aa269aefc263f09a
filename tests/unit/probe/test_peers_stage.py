"""The peers stage on a simulated root, its ranks processes of the CPU: the good end and every bad one."""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from peers_root import THIRD, three
from probe_root import ADDRESSES, alive, children, make_root

from nodeprep.model.codec import from_builtins
from nodeprep.model.probe_peers import Peers as Document
from nodeprep.probe import gpus
from nodeprep.probe.peers import budget
from nodeprep.probe.peers.stage import TRANSPORT_VARIABLE, Order, Peers
from nodeprep.sim import hardware


@pytest.fixture(autouse=True)
def _soon(monkeypatch):
    """A rank that hangs is found soon, also on a busy machine."""
    monkeypatch.setattr(budget, "_SIMULATED", dataclasses.replace(budget._SIMULATED, collective_s=6.0))


def stage(root: Path, log: Any, *, stopped=lambda: False, say=lambda _: None, **changes: Any) -> Peers:
    found = gpus.find(str(root), 5.0).gpus
    order = Order(str(root), "numpy", found, len(found), 5.0, log.fileno())
    return Peers(dataclasses.replace(order, **changes), say, stopped)


def measure(root: Path, log: Any, **changes: Any) -> Document:
    reading = stage(root, log, **changes).run()
    assert reading["state"] == "ok", reading
    return from_builtins(reading["value"], Document, source="peers")


@pytest.fixture
def log(tmp_path):
    with (tmp_path / "log").open("ab") as file:
        yield file


def test_a_healthy_node_is_measured_in_all_ways(tmp_path, log):
    found = measure(three(tmp_path / "root"), log)
    assert found.gpus == (*ADDRESSES, THIRD)
    assert [rank.error for rank in found.ranks] == ["", "", ""]
    assert {(pair.source, pair.target) for pair in found.pairs} == {
        (one, other) for one in found.gpus for other in found.gpus if one != other
    }
    for pair in found.pairs:
        assert pair.access.value is True
        assert pair.nvlinks.value == 18
        assert pair.gbps.require("rate") == pytest.approx(373.5)
        assert pair.content_checks == 4
        assert pair.content_errors == 0
    sizes = found.all_reduce.sizes.require("sizes")
    assert [size.wrong_elements for size in sizes] == [0, 0]
    assert sizes[-1].bus_gbps == pytest.approx(sizes[-1].algorithm_gbps * 4 / 3)
    assert found.all_reduce.transport == "ring"
    for around in found.nvlinks:
        assert around.before.require("before").active.value == 18
    # No PCI bus in this root: it is said, and the rounds that need no bus are there all the same.
    assert found.topology.state == "error"
    assert [each.kind for each in found.rounds] == ["alone", "alone", "alone", "all"]


def test_nothing_is_left_behind(tmp_path, log):
    measure(three(tmp_path / "root"), log)
    left = [pid for pid in children(os.getpid()) if alive(pid) and b"peers.rank" in _command(pid)]
    assert left == []


def test_a_rank_that_does_not_arrive_is_named_and_all_are_ended(tmp_path, log):
    found = measure(three(tmp_path / "root", hardware.hanging_peer()), log)
    assert [(rank.rank, rank.gpu) for rank in found.all_reduce.hung] == [(1, ADDRESSES[1])]
    assert found.all_reduce.sizes.detail == (
        f"the all-reduce did not end: rank 1 (GPU {ADDRESSES[1]}) did not arrive within 6 s, "
        "2 of 3 ranks waited for it"
    )
    # What was measured before is not lost, and those that waited have done nothing wrong.
    assert all(pair.gbps.value for pair in found.pairs)
    assert [rank.error for rank in found.ranks] == ["", "", ""]


def test_a_hanging_rank_can_be_asked_for(tmp_path, log):
    found = measure(three(tmp_path / "root"), log, hanging_rank=2)
    assert [rank.gpu for rank in found.all_reduce.hung] == [THIRD]


def test_a_killed_rank_hides_nothing_of_the_others(tmp_path, log):
    killed: list[int] = []

    def kill_one(words: str) -> None:
        if words.startswith("copies from"):
            victim = next(pid for pid in children(os.getpid()) if f'"{ADDRESSES[1]}"' in _spec_of(pid))
            os.kill(victim, signal.SIGKILL)
            killed.append(victim)

    found = measure(three(tmp_path / "root"), log, say=kill_one)
    assert killed
    assert [rank.error for rank in found.ranks] == ["", "its process ended: killed by SIGKILL", ""]
    for pair in found.pairs:
        assert (pair.gbps.state == "error") == (pair.source == ADDRESSES[1])
    assert "killed by SIGKILL" in found.all_reduce.sizes.detail
    assert found.all_reduce.hung == ()


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


def _spec_of(pid: int) -> str:
    """The ranks of a stage differ in what they read only; the second one started is rank 1."""
    ranks = sorted(pid for pid in children(os.getpid()) if b"peers.rank" in _command(pid))
    return f'"{(*ADDRESSES, THIRD)[ranks.index(pid)]}"' if pid in ranks else ""


def test_changed_copies_are_counted_in_their_direction_only(tmp_path, log):
    found = measure(three(tmp_path / "root", hardware.corrupt_peer(THIRD)), log)
    errors = {(pair.source, pair.target): pair.content_errors for pair in found.pairs}
    assert errors.pop((ADDRESSES[1], THIRD)) == 4
    assert set(errors.values()) == {0}


def test_a_slow_way_is_slow_in_its_direction_only(tmp_path, log):
    found = measure(three(tmp_path / "root", hardware.slow_peer(THIRD, 0.5)), log)
    slow = [pair for pair in found.pairs if pair.gbps.require("rate") < 300]
    assert [(pair.source, pair.target) for pair in slow] == [(ADDRESSES[1], THIRD)]


def test_a_gpu_that_has_gone_takes_no_part(tmp_path, log):
    root = three(tmp_path / "root")
    found = gpus.find(str(root), 5.0).gpus
    three(root, hardware.call_error("nvmlDeviceGetHandleByIndex_v2", 15))
    told = measure(root, log, gpus=found, loaded=3)
    assert told.gpus == (ADDRESSES[0], THIRD)
    assert "GPU is lost" in told.absent[ADDRESSES[1]] or "NVML error 15" in told.absent[ADDRESSES[1]]


def test_a_single_gpu_has_no_peers(tmp_path, log):
    root = make_root(tmp_path / "root")
    found = gpus.find(str(root), 5.0).gpus[:1]
    assert stage(root, log, gpus=found, loaded=1).run()["state"] == "not_supported"
    # One that is left over of two is no single GPU.
    left_over = stage(root, log, gpus=found, loaded=2).run()
    assert left_over == {"state": "error", "detail": "only 1 of 2 GPUs got through their own load"}


def test_a_stopped_run_ends_at_once(tmp_path, log):
    began = time.monotonic()
    told: list[str] = []
    reading = stage(three(tmp_path / "root"), log, say=told.append, stopped=lambda: len(told) > 1).run()
    assert reading["state"] == "error"
    assert "stopped" in reading["detail"]
    assert time.monotonic() - began < 15


def test_a_hung_nvml_is_an_error_with_words(tmp_path, log):
    root = three(tmp_path / "root")
    found = gpus.find(str(root), 5.0).gpus
    three(root, hardware.hang("nvmlDeviceGetNvLinkState"))
    reading = stage(root, log, gpus=found, loaded=3, nvml_deadline_s=1.0).run()
    assert reading["state"] == "error"
    assert "hung" in reading["detail"]


@pytest.mark.torch
@pytest.mark.parametrize("hanging", [None, 0])
def test_ranks_join_in_gloo(tmp_path, log, monkeypatch, hanging):
    pytest.importorskip("torch", reason="PyTorch is not installed; pip install torch to run this")
    monkeypatch.setenv(TRANSPORT_VARIABLE, "gloo")
    found = measure(three(tmp_path / "root"), log, hanging_rank=hanging)
    assert found.all_reduce.transport == "gloo"
    if hanging is None:
        assert [size.wrong_elements for size in found.all_reduce.sizes.require("sizes")] == [0, 0]
    else:
        assert [rank.rank for rank in found.all_reduce.hung] == [hanging]


def test_a_rank_dies_with_its_parent(tmp_path):
    """Even when the probe itself is killed."""
    root = three(tmp_path / "root")
    from probe_root import command

    out = tmp_path / "out"
    run = subprocess.Popen(
        command(root, out, "--duration-s", "0.3", "--inject", "hang:rank=1"),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    end = time.monotonic() + 60
    ranks: list[int] = []
    while len(ranks) < 3 and time.monotonic() < end:
        ranks = [pid for pid in children(run.pid) if b"peers.rank" in _command(pid)]
        time.sleep(0.05)
    assert len(ranks) == 3
    run.kill()
    run.wait()
    end = time.monotonic() + 5
    while any(alive(pid) for pid in ranks):
        assert time.monotonic() < end
        time.sleep(0.02)
