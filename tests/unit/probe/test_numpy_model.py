"""The reference model: its generator, its digests, and what a flipped bit does to them."""

from __future__ import annotations

import dataclasses

import pytest

np = pytest.importorskip("numpy", reason="numpy is not installed")

from nodeprep.probe import inject, workload  # noqa: E402
from nodeprep.probe.backends import numpy_model  # noqa: E402
from nodeprep.probe.hashing import hexadecimal, key, mix, row_weight, signed32, signed64  # noqa: E402
from nodeprep.probe.problem import UsageProblem  # noqa: E402

TINY = workload.load("tiny")


def digests(model):
    return [numpy_model.digest(output) for output in model.outputs()]


@pytest.fixture(scope="module")
def model():
    return numpy_model.NumpyModel(TINY)


def test_the_array_hash_is_the_scalar_hash():
    name_key = key(7, "a.b")
    assert list(numpy_model.hash_counters(name_key, 100)) == [mix(n ^ name_key) for n in range(100)]


def test_signed_views_keep_the_bits():
    assert signed32(0xFFFFFFFF) == -1
    assert signed64(1 << 63) == -(1 << 63)
    assert hexadecimal(-1) == "f" * 16
    assert hexadecimal(1) == "0" * 15 + "1"


def test_weights_are_uniform_with_the_asked_for_deviation():
    from nodeprep.probe.model import Tensor

    values = numpy_model.make_tensor(TINY, Tensor("x", (1 << 18,), 0.02, 1.0))
    assert values.mean() == pytest.approx(1.0, abs=2e-4)
    assert values.std() == pytest.approx(0.02, rel=0.01)


def test_seed_and_name_make_other_weights():
    from nodeprep.probe.model import Tensor

    one = numpy_model.make_tensor(TINY, Tensor("x", (64,), 1.0))
    assert not np.array_equal(one, numpy_model.make_tensor(TINY, Tensor("y", (64,), 1.0)))
    other = dataclasses.replace(TINY, seed=1)
    assert not np.array_equal(one, numpy_model.make_tensor(other, Tensor("x", (64,), 1.0)))


def test_the_digest_is_the_weighted_sum_of_row_sums():
    values = np.arange(8, dtype=np.float32).reshape(2, 4)
    rows = [[int(word) for word in row] for row in values.view(np.uint64)]
    total = sum(row_weight(n) * sum(row) for n, row in enumerate(rows)) % (1 << 64)
    assert numpy_model.digest(values) == hexadecimal(total)


def test_every_single_bit_changes_the_digest():
    values = np.zeros((3, 8), dtype=np.float16)
    before = numpy_model.digest(values)
    bits = values.view(np.uint16)
    for row in range(3):
        for column in range(8):
            for bit in range(16):
                bits[row, column] ^= np.uint16(1 << bit)
                assert numpy_model.digest(values) != before
                bits[row, column] ^= np.uint16(1 << bit)


def test_exchanged_rows_change_the_digest():
    values = np.arange(16, dtype=np.float32).reshape(2, 8)
    assert numpy_model.digest(values) != numpy_model.digest(values[::-1])


def test_no_false_alarm_in_many_iterations(model):
    reference = digests(model)
    assert len(reference) == TINY.depth + 1
    assert all(digests(model) == reference for _ in range(100))


@pytest.mark.parametrize("tensor", inject.TENSORS)
@pytest.mark.parametrize("bit", [0, 9, 15])
def test_a_flip_shows_first_in_its_own_block(model, tensor, bit):
    reference = digests(model)
    for block in (0, 7, 15):
        flip = inject.make(TINY, block=block, bit=bit, tensor=tensor)
        model.flip(flip)
        found = digests(model)
        model.flip(flip)
        assert found[:block] == reference[:block]
        assert found[block] != reference[block]
    assert digests(model) == reference


@pytest.mark.parametrize("tensor", inject.TENSORS)
def test_a_flip_changes_the_weights_of_its_block_and_no_other(model, tensor):
    before = list(model.weight_digests())
    assert len(before) == TINY.depth + 1
    flip = inject.make(TINY, block=7, bit=0, tensor=tensor)
    model.flip(flip)
    after = list(model.weight_digests())
    model.flip(flip)
    assert [place for place in range(len(before)) if before[place] != after[place]] == [7]
    assert list(model.weight_digests()) == before


def test_gelu_is_exact_to_single_precision():
    import math

    x = np.linspace(-6, 6, 1001, dtype=np.float32)
    exact = np.array([0.5 * v * (1 + math.erf(v / math.sqrt(2))) for v in x.astype(float)])
    assert np.abs(numpy_model._gelu(x) - exact).max() < 1e-6


def test_attention_and_norm_against_a_plain_loop():
    """One block by the book, in double precision and without any trick."""
    model = numpy_model.NumpyModel(TINY)
    x = model._embed(TINY.batch)
    w = {name: value.astype(float) for name, value in model.blocks[0].items()}

    def norm(v, weight, bias):
        centred = v - v.mean(-1, keepdims=True)
        return centred / np.sqrt(v.var(-1, keepdims=True) + 1e-6) * weight + bias

    h = norm(x.astype(float), w["norm1.weight"], w["norm1.bias"])[0]
    qkv = h @ w["qkv.weight"].T + w["qkv.bias"]
    mixed = np.zeros_like(h)
    size = TINY.width // TINY.heads
    for head in range(TINY.heads):
        q, k, v = (
            qkv[:, part * TINY.width + head * size : part * TINY.width + (head + 1) * size]
            for part in range(3)
        )
        for token in range(TINY.tokens):
            scores = np.exp([q[token] @ k[other] / size**0.5 for other in range(TINY.tokens)])
            mixed[token, head * size : (head + 1) * size] = (scores / scores.sum()) @ v
    y = x[0].astype(float) + mixed @ w["proj.weight"].T + w["proj.bias"]
    import math

    h = norm(y, w["norm2.weight"], w["norm2.bias"]) @ w["fc1.weight"].T + w["fc1.bias"]
    h = np.vectorize(lambda v: 0.5 * v * (1 + math.erf(v / math.sqrt(2))))(h)
    y = y + h @ w["fc2.weight"].T + w["fc2.bias"]
    assert np.abs(next(model.outputs())[0] - y).max() < 1e-5


def test_non_finite_values_are_counted():
    values = np.array([1.0, np.nan, np.inf, -np.inf], dtype=np.float32)
    assert numpy_model.non_finite(values) == 3


def test_bf16_is_not_numpys():
    with pytest.raises(UsageProblem, match="no bf16"):
        numpy_model.NumpyModel(dataclasses.replace(TINY, dtype="bf16"))
