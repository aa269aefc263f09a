"""The training step against PyTorch's own autograd over the whole model, and what its digests see."""

from __future__ import annotations

import dataclasses

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed; pip install torch to run these")

import torch.nn.functional as F  # noqa: E402, N812 - its usual name

from nodeprep.probe import inject, workload  # noqa: E402
from nodeprep.probe.backends import torch_kernels, torch_model, torch_training  # noqa: E402
from nodeprep.probe.hashing import row_weight, signed64  # noqa: E402

pytestmark = pytest.mark.torch
SMALL = dataclasses.replace(workload.load("tiny"), depth=3, dtype="fp32", batch=2, mode="training")


@pytest.fixture(autouse=True)
def _no_gradients():
    with torch.no_grad():
        yield


def step_of(shape: workload.Workload) -> torch_training.TrainingStep:
    return torch_training.TrainingStep(torch_model.TorchModel(shape, "cpu"))


def numbers(values: list[torch.Tensor]) -> list[int]:
    return [int(one) for one in values]


def by_autograd(made: torch_model.TorchModel, limit: float) -> list[dict[str, torch.Tensor]]:
    """Gradients of every block's tensors and input, with nothing checkpointed."""
    leaves = [{name: t.clone().requires_grad_() for name, t in block.items()} for block in made.blocks]
    inputs = []
    with torch.enable_grad():
        x = made.embed(made.workload.batch).requires_grad_()
        for weights in leaves:
            inputs.append(x)
            y = x + made.attention_part(x, weights)
            h = torch_kernels.norm(y, weights["norm2.weight"], weights["norm2.bias"])
            h = F.gelu(F.linear(h, weights["fc1.weight"], weights["fc1.bias"]))
            if limit:
                h.register_hook(lambda g: g * (limit / (g.norm() + 1e-6)).clamp(max=1.0))
            x = y + F.linear(h, weights["fc2.weight"], weights["fc2.bias"])
        loss = (made.last_norm(x) * made.outer["position"]).sum()
        wanted = [one for block, x in zip(leaves, inputs, strict=True) for one in (x, *block.values())]
        found = torch.autograd.grad(loss, wanted)
    size = len(leaves[0]) + 1
    return [
        dict(zip(("input", *leaves[0]), found[n * size : (n + 1) * size], strict=True))
        for n in range(len(leaves))
    ]


@pytest.mark.parametrize("limit", [0.0, 0.05])
def test_gradients_are_those_of_autograd(monkeypatch, limit):
    made = torch_model.TorchModel(SMALL, "cpu")
    step = step_of(dataclasses.replace(SMALL, gradient_norm_max=limit))
    flat: list[torch.Tensor] = []
    real = step._digest
    monkeypatch.setattr(step, "_digest", lambda one: (flat.append(one.clone()), real(one))[1])
    step.run(SMALL.batch)
    names = ("input", *made.blocks[0])
    size = len(names)
    kept = [dict(zip(names, flat[start : start + size], strict=True)) for start in range(0, len(flat), size)][
        ::-1
    ]
    expected = by_autograd(made, limit)
    assert len(kept) == len(expected) == SMALL.depth
    for block, (mine, theirs) in enumerate(zip(kept, expected, strict=True)):
        for name in names:
            assert torch.allclose(mine[name], theirs[name], rtol=1e-3, atol=1e-6), (block, name)


def test_truncation_changes_gradients_and_no_output():
    free = numbers(step_of(SMALL).run(SMALL.batch))
    held = numbers(step_of(dataclasses.replace(SMALL, gradient_norm_max=0.001)).run(SMALL.batch))
    # Outputs and weights.
    before = 2 * (SMALL.depth + 1)
    assert free[:before] == held[:before]
    assert all(a != b for a, b in zip(free[before:-2], held[before:-2], strict=True))


def test_a_step_has_the_outputs_of_inference_and_is_the_same_every_time():
    made = torch_model.TorchModel(SMALL, "cpu")
    step = torch_training.TrainingStep(made)
    first = numbers(step.run(2))
    assert first == numbers(step.run(2))
    assert len(first) == 3 * SMALL.depth + 2 + 2
    assert first[: 2 * SMALL.depth + 2] == numbers(made.forward(2))[:-1]


def test_no_changed_gradient_can_be_lost_in_a_blocks_digest():
    weights = numbers(step_of(SMALL)._tensor_weights)
    assert weights == [signed64(row_weight(number)) for number in range(13)]
    # Odd, hence with an inverse.
    assert all(one % 2 for one in weights)


def test_a_flipped_bit_shows_in_the_block_and_in_all_gradients():
    made = torch_model.TorchModel(SMALL, "cpu")
    step = torch_training.TrainingStep(made)
    before = numbers(step.run(2))
    made.flip(inject.make(SMALL, block=1, bit=20))
    after = numbers(step.run(2))
    places = [place for place, (a, b) in enumerate(zip(before, after, strict=True)) if a != b]
    assert places[0] == 1
    # Every gradient depends on the outputs above it.
    assert set(range(2 * SMALL.depth + 2, 3 * SMALL.depth + 2)) <= set(places)


def test_non_finite_gradients_are_counted():
    made = torch_model.TorchModel(SMALL, "cpu")
    made.outer["norm.weight"][5] = float("nan")
    *_, bad, _ = torch_training.TrainingStep(made).run(2)
    # The last block's output is finite: only its gradients are not.
    assert int(made.forward(2)[-1]) == 0
    assert int(bad) > 0


def test_subnormal_values_are_counted_and_zero_is_none():
    tiny = torch.finfo(torch.float16).tiny
    values = torch.tensor([0.0, tiny, tiny / 2, -tiny / 4, 1.0, float("nan")], dtype=torch.float16)
    assert int(torch_training._subnormal(values)) == 2
