"""The peers stage at the end of a whole run: over the GPUs that got through, whatever the others did."""

from __future__ import annotations

import os
import signal

import pytest
from peers_root import THIRD, three
from probe_root import ADDRESSES, PATIENCE_S, progress, result, run, start, workers

pytest.importorskip("numpy", reason="numpy is not installed")


def test_it_runs_after_the_load_and_is_in_the_result(tmp_path):
    done = run(three(tmp_path / "root"), tmp_path / "out", "--duration-s", "0.4")
    assert done.returncode == 0, done.stderr
    found = result(tmp_path / "out")
    peers = found.peers.require("peers")
    assert peers.gpus == (*ADDRESSES, THIRD)
    words = [line["message"] for line in progress(tmp_path / "out") if line["phase"] == "peers"]
    assert words[0] == "starting one process a GPU"
    assert words[-1] == "all-reduce over all GPUs"
    # Telemetry of the load ends with the load: the stage belongs to no GPU's phases.
    for gpu in found.gpus:
        assert gpu.phases[-1].end_s <= found.duration_s - peers.duration_s + 0.5


def test_a_killed_worker_leaves_the_others_to_each_other(tmp_path):
    process = start(three(tmp_path / "root"), tmp_path / "out", "--duration-s", "6")
    victim = sorted(workers(process.pid))[1]
    os.kill(victim, signal.SIGKILL)
    assert process.wait(timeout=PATIENCE_S) == 4
    found = result(tmp_path / "out")
    (failed,) = [gpu.pci_address for gpu in found.gpus if gpu.state == "failed"]
    through = tuple(gpu.pci_address for gpu in found.gpus if gpu.state == "completed")
    assert len(through) == 2
    peers = found.peers.require("peers")
    assert peers.gpus == through
    assert failed not in peers.gpus
    assert [size.wrong_elements for size in peers.all_reduce.sizes.require("sizes")] == [0, 0]


def test_a_flip_on_one_gpu_stops_nobody(tmp_path):
    done = run(
        three(tmp_path / "root"), tmp_path / "out", "--duration-s", "0.4", "--inject", "flip:block=7,bit=0"
    )
    assert done.returncode == 0, done.stderr
    found = result(tmp_path / "out")
    assert len(found.peers.require("peers").gpus) == 3


def test_one_chosen_gpu_of_several_is_alone(tmp_path):
    done = run(three(tmp_path / "root"), tmp_path / "out", "--duration-s", "0.4", "--gpu", THIRD)
    assert done.returncode == 0, done.stderr
    assert result(tmp_path / "out").peers.state == "not_supported"
