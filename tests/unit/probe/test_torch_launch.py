"""How passes get onto the device, on the CPU or on a pretended CUDA."""

from __future__ import annotations

import dataclasses
import sys
import time

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed; pip install torch to run these")

import fake_cuda  # noqa: E402

from nodeprep.probe import inject, workload  # noqa: E402
from nodeprep.probe.backends import torch_kernels  # noqa: E402
from nodeprep.probe.backends.torch_launch import Launcher  # noqa: E402
from nodeprep.probe.problem import ProbeError  # noqa: E402

pytestmark = pytest.mark.torch
TINY = dataclasses.replace(workload.load("tiny"), depth=3)
RANGE = dataclasses.replace(TINY, batch=3, batch_least=1)


@pytest.fixture(autouse=True)
def _no_gradients():
    with torch.no_grad():
        yield


def make(shape: workload.Workload, idle=time.sleep) -> Launcher:
    return Launcher(shape, "cpu", idle, lambda: None)


def test_batches_take_turns_and_each_gives_its_own_bits_every_time():
    launcher = make(RANGE)
    seen: dict[int, set[tuple[int, ...]]] = {}
    for _ in range(2 * len(RANGE.batches)):
        batch = launcher.next_batch()
        seen.setdefault(batch, set()).add(tuple(launcher.launch(batch).tolist()))
    assert sorted(seen) == [1, 2, 3]
    assert all(len(bits) == 1 for bits in seen.values())
    assert len(set.union(*seen.values())) == 3


def test_a_pass_again_gives_the_digests_of_the_last_batch():
    launcher = make(RANGE)
    launcher.next_batch()
    second = launcher.next_batch()
    values = launcher.launch(second).tolist()
    assert launcher.again(1).tolist() == values[:2]
    # Everything but the counts: the final norm and the weights come with the whole pass.
    assert launcher.again(3).tolist()[:8] == values[:8]


def test_a_training_pass_again_reaches_its_gradients():
    deterministic = torch.are_deterministic_algorithms_enabled()
    try:
        launcher = make(dataclasses.replace(TINY, mode="training"))
        assert torch.are_deterministic_algorithms_enabled()
        values = launcher.launch(launcher.next_batch()).tolist()
        assert launcher.again(9).tolist()[9] == values[9]
    finally:
        torch.use_deterministic_algorithms(deterministic)


@pytest.mark.parametrize("how", ["copied", "prefetched"])
def test_an_input_that_travels_gives_the_same_bits(monkeypatch, how):
    fake_cuda.install(monkeypatch, torch)
    resident = make(RANGE)
    expected = [resident.launch(batch).tolist() for batch in (1, 3, 2, 3)]
    launcher = make(dataclasses.replace(RANGE, input=how))
    found = []
    for batch in (1, 3, 2, 3):
        # What lies in the model's own buffer must not matter: every pass gets its input anew.
        launcher._model.image.zero_()
        found.append(launcher.launch(batch).tolist())
    assert found == expected


def test_bursts_rest_between_blocks_and_change_no_bit():
    rests: list[float] = []
    plain = make(TINY).launch(1).tolist()
    launcher = make(dataclasses.replace(TINY, burst_duty=0.01, burst_period_s=0.05), rests.append)
    assert launcher.launch(1).tolist() == plain
    # Three blocks and the final norm, nearly always in the part of a period without load.
    assert 1 <= len(rests) <= 4


@pytest.mark.parametrize("bit", [0, 12])
def test_a_flip_is_seen_by_the_next_pass(bit):
    shape = dataclasses.replace(RANGE, dtype="fp32")
    launcher = make(shape)
    before = launcher.launch(3).tolist()
    fault = inject.make(shape, block=1, bit=bit + 16, tensor="qkv", index=7)
    launcher.flip(fault)
    after = launcher.launch(3).tolist()
    assert before[0] == after[0]
    assert before[1] != after[1]
    launcher.flip(fault)
    assert launcher.launch(3).tolist() == before


@pytest.mark.parametrize("name", ["triton", "compile"])
def test_kernels_that_need_a_gpu_say_so(name):
    with pytest.raises(ProbeError, match=f"kernels: {name} needs a GPU") as caught:
        make(dataclasses.replace(TINY, kernels=name))
    assert "plain" in caught.value.hint


def test_kernels_without_triton_say_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "triton", None)
    with pytest.raises(ProbeError, match="kernels: triton needs Triton") as caught:
        torch_kernels._require_triton("triton", torch.device("cuda"))
    assert "no compiler" in caught.value.hint


def test_the_epilogue_of_cublaslt_stays_near_the_plain_kernels():
    shape = dataclasses.replace(TINY, dtype="fp32")
    outputs: list[list[torch.Tensor]] = []
    for kernels in ("plain", "cublaslt"):
        kept: list[torch.Tensor] = []
        outputs.append(kept)
        launcher = make(dataclasses.replace(shape, kernels=kernels))
        launcher._model.forward(each=lambda x, kept=kept: kept.append(x.clone()))
    for one, other in zip(*outputs, strict=True):
        # tanh against erf in GELU: some 1e-3 on values of size 1 to 4.
        assert (one - other).abs().max() < 0.02
