"""A simulated square wave lasts until it was seen, however slowly the host looks at it."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest
from probe_root import ADDRESSES, make_root

from nodeprep.sim import simulated_nvml

numpy_backend = pytest.importorskip("nodeprep.probe.backends.numpy_backend")
pytest.importorskip("numpy", reason="numpy is not installed")


def backend(root: Path) -> numpy_backend.NumpyBackend:
    return numpy_backend.NumpyBackend(str(root), {"address": ADDRESSES[0], "name": "NVIDIA H200"})


def test_a_slow_reader_gets_a_longer_wave(tmp_path):
    root = make_root(tmp_path / "root")
    data = json.loads((root / simulated_nvml.DATA).read_text())["gpus"][0]
    gpu, ended, drawn = simulated_nvml.Gpu(str(root.resolve()), data), threading.Event(), []

    def read() -> None:
        while not ended.wait(0.07):
            drawn.append(gpu.power_instant_mw())

    reader = threading.Thread(target=read)
    computing = backend(root)
    reader.start()
    try:
        done = computing.bursts(0.05, 0.5, 3)
    finally:
        ended.set()
        reader.join()
    assert done.bursts > 3
    assert done.bursts == done.products
    assert done.mismatches == 0
    assert max(drawn) > 4 * min(drawn)


def test_a_wave_that_nobody_reads_ends(tmp_path, monkeypatch):
    monkeypatch.setattr(numpy_backend, "_UNREAD_S", 0.2)
    done = backend(make_root(tmp_path / "root")).bursts(0.05, 0.5, 3)
    assert 3 <= done.bursts < 40
