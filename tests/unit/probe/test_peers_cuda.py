"""The ranks' CUDA code on a pretended CUDA: what it copies, counts and compares; no time is real."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed; pip install torch to run these")

import fake_cuda  # noqa: E402

from nodeprep.probe.peers import cuda  # noqa: E402
from nodeprep.probe.problem import ProbeError  # noqa: E402

pytestmark = pytest.mark.torch
UUIDS = ("GPU-0a", "GPU-0b")
ADDRESSES = ["0000:17:00.0", "0000:2a:00.0"]


class OnCpu(cuda.CudaDevice):
    """Every GPU is the CPU."""

    def device(self, number: int):
        del number
        return torch.device("cpu")


class Stream:
    def __init__(self, *_: object) -> None:
        pass

    def synchronize(self) -> None:
        pass


@pytest.fixture
def make(monkeypatch):
    fake_cuda.install(monkeypatch, torch)
    monkeypatch.setattr(cuda, "COPY_BYTES", 1 << 20)
    for name, value in {
        "Stream": Stream,
        "synchronize": lambda *_: None,
        "set_device": lambda _: None,
        "device_count": lambda: 2,
        "can_device_access_peer": lambda one, other: (one, other) == (0, 1),
        "get_device_properties": lambda number: SimpleNamespace(uuid=UUIDS[number][4:]),
    }.items():
        monkeypatch.setattr(torch.cuda, name, value)
    monkeypatch.setattr(torch.cuda, "nccl", SimpleNamespace(version=lambda: (2, 28, 3)))

    def made(number: int = 0, uuids: tuple[str, ...] = UUIDS) -> OnCpu:
        spec = {"number": number, "addresses": ADDRESSES, "uuids": uuids, "hangs": False}
        return OnCpu(spec, lambda **_: None)

    yield made
    torch.set_grad_enabled(True)


def test_says_whom_it_can_reach(make):
    told = make().about()
    assert told["access"] == {ADDRESSES[1]: {"state": "ok", "value": True}}
    assert told["versions"]["nccl"] == "2.28.3"
    assert make(1).about()["access"] == {ADDRESSES[0]: {"state": "ok", "value": False}}


def test_other_gpus_than_asked_for_are_refused(make):
    with pytest.raises(ProbeError, match="where GPU-0b was asked for"):
        make(uuids=("GPU-0b", "GPU-0a"))
    with pytest.raises(ProbeError, match="not the 3 of this run"):
        make(uuids=(*UUIDS, "GPU-0c"))


@pytest.mark.parametrize("direction", ["h2d", "d2h"])
def test_host_copies_are_compared(make, direction):
    device = make()
    told = device.host_copies(direction, 0.0, time.monotonic(), ADDRESSES)
    assert told["gbps"] > 0
    assert (told["checks"], told["errors"]) == (1, 0)
    # What lies on the other side is not what was sent.
    if direction == "h2d":
        device._pinned[1][7] ^= 1
    else:
        device._patterns[1][7] ^= 1
    assert device.host_copies(direction, 0.0, time.monotonic(), ADDRESSES)["errors"] == 1


def test_copies_to_a_peer_are_compared_at_the_far_end(make):
    device = make()
    for both_ways in (False, True):
        told = device.pair(1, 0.0, both_ways=both_ways)
        assert (told["checks"], told["errors"], told["back_errors"]) == (2, 0, 0)
    device._patterns[0][7] ^= 1
    assert device.pair(1, 0.0, both_ways=False)["errors"] == 1
    # The way back brings the same changed pattern.
    told = device.pair(1, 0.0, both_ways=True)
    assert (told["errors"], told["back_errors"]) == (1, 1)


def test_a_rank_that_has_not_joined_cannot_reduce(make):
    with pytest.raises(ProbeError, match="not joined"):
        make().all_reduce(4096, 1, True)
