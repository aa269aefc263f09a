"""The vision transformer in numpy: the reference the other backends' numbers are tested against.

Weights have the workload's precision; arithmetic and activations are float32. How a pass is launched,
fed and fused makes no difference to what it must give, so those keys of a workload do nothing here.
"""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Optional

import numpy as np

from .. import model
from ..hashing import MULTIPLIERS, ROW_STEP, SHIFTS, hexadecimal, key
from ..inject import Flip
from ..problem import UsageProblem
from ..workload import Workload

Array = Any
STORAGE = {"fp16": (np.float16, np.uint16), "fp32": (np.float32, np.uint32)}


def hash_counters(name_key: int, count: int) -> Array:
    """The 32-bit hash of 0 .. count-1 under a tensor's key."""
    x: Array = np.arange(count, dtype=np.uint32)
    x ^= np.uint32(name_key)
    x ^= x >> np.uint32(SHIFTS[0])
    x *= np.uint32(MULTIPLIERS[0])
    x ^= x >> np.uint32(SHIFTS[1])
    x *= np.uint32(MULTIPLIERS[1])
    x ^= x >> np.uint32(SHIFTS[2])
    return x


def make_tensor(workload: Workload, tensor: model.Tensor, prefix: str = "") -> Array:
    """A tensor of the model in the workload's precision, as float32 values."""
    count = int(np.prod(tensor.shape))
    bits = hash_counters(key(workload.seed, prefix + tensor.name), count) >> np.uint32(8)
    values = bits.astype(np.float32)
    values *= np.float32(2.0**-24)
    values -= np.float32(0.5)
    values *= np.float32(tensor.scale)
    if tensor.offset:
        values += np.float32(tensor.offset)
    return values.astype(_storage(workload)[0]).astype(np.float32).reshape(tensor.shape)


def digest(values: Array) -> str:
    """The digest of an output: its rows summed as 64-bit words, each row with its own odd weight.

    One changed word changes it for certain: an odd weight has an inverse modulo 2^64.
    """
    words = np.ascontiguousarray(values).view(np.uint64)
    rows = words.reshape(-1, words.shape[-1]).sum(axis=1, dtype=np.uint64)
    weights = np.arange(rows.size, dtype=np.uint64) * np.uint64(ROW_STEP) | np.uint64(1)
    return hexadecimal(int((rows * weights).sum(dtype=np.uint64)))


def product(size: int = 64) -> Array:
    """A product of two matrices that are the same every time."""
    values = (hash_counters(key(0, "product"), size * size) >> np.uint32(8)).astype(np.float32)
    matrix = (values * np.float32(2.0**-24) - np.float32(0.5)).reshape(size, size)
    return matrix @ matrix.T


class NumpyModel:
    """Weights, input and forward pass.

    Raises:
        UsageProblem: numpy has no such precision, and the reference no backward pass.
    """

    def __init__(self, workload: Workload) -> None:
        self.workload = workload
        _storage(workload)
        if workload.training:
            raise UsageProblem(
                "the numpy backend has no backward pass",
                hint="mode: training runs on GPUs only; rehearse the path with the workload tiny",
            )
        self.outer = {t.name: make_tensor(workload, t) for t in model.embedding(workload)}
        self.blocks: List[Dict[str, Array]] = [
            {t.name: make_tensor(workload, t, "block%d." % index) for t in model.block(workload)}
            for index in range(workload.depth)
        ]
        self.image = make_tensor(workload, model.image(workload))

    def outputs(self, batch: Optional[int] = None) -> Iterator[Array]:
        """Each block's output (B, T, d) over the first images (None: all), then the final, normalised one."""
        x = self._embed(batch or self.workload.batch)
        for weights in self.blocks:
            x = self._block(x, weights)
            yield x
        yield _norm(x, self.outer["norm.weight"], self.outer["norm.bias"])

    def weight_digests(self) -> Iterator[str]:
        """Of each block's weights, then of the embedding's, in the weights' precision."""
        for made, tensors in [
            *((weights, model.block(self.workload)) for weights in self.blocks),
            (self.outer, model.embedding(self.workload)),
        ]:
            places, length = model.layout(tensors)
            memory = np.zeros(length, dtype=_storage(self.workload)[0])
            for tensor, start in places:
                memory[start : start + tensor.count] = made[tensor.name].reshape(-1)
            yield digest(memory.reshape(-1, model.ROW))

    def flip(self, flip: Flip) -> None:
        """Flips a bit of a weight, in the weight's own precision."""
        precision, bits = _storage(self.workload)
        matrix = self.blocks[flip.block][flip.tensor + ".weight"].reshape(-1)
        value = matrix[flip.index : flip.index + 1].astype(precision)
        value.view(bits)[0] ^= bits(1 << flip.bit)
        matrix[flip.index] = value[0]

    def _embed(self, batch: int) -> Array:
        w = self.workload
        rows, columns, p = w.image_height // w.patch, w.image_width // w.patch, w.patch
        patches = self.image[:batch].reshape(batch, 3, rows, p, columns, p).transpose(0, 2, 4, 1, 3, 5)
        x = patches.reshape(batch, w.patches, 3 * p * p) @ self.outer["patch.weight"].T
        x += self.outer["patch.bias"]
        token = np.broadcast_to(self.outer["class_token"], (batch, 1, w.width))
        return np.concatenate([token, x], axis=1) + self.outer["position"]

    def _block(self, x: Array, weights: Dict[str, Array]) -> Array:
        w, batch = self.workload, x.shape[0]
        h = _norm(x, weights["norm1.weight"], weights["norm1.bias"])
        qkv = h @ weights["qkv.weight"].T + weights["qkv.bias"]
        q, k, v = qkv.reshape(batch, w.tokens, 3, w.heads, -1).transpose(2, 0, 3, 1, 4)
        scores = q @ k.swapaxes(-1, -2) * np.float32((w.width // w.heads) ** -0.5)
        scores -= scores.max(axis=-1, keepdims=True)
        np.exp(scores, out=scores)
        scores /= scores.sum(axis=-1, keepdims=True)
        mixed = (scores @ v).transpose(0, 2, 1, 3).reshape(batch, w.tokens, w.width)
        x = x + (mixed @ weights["proj.weight"].T + weights["proj.bias"])
        h = _norm(x, weights["norm2.weight"], weights["norm2.bias"])
        h = _gelu(h @ weights["fc1.weight"].T + weights["fc1.bias"])
        return x + (h @ weights["fc2.weight"].T + weights["fc2.bias"])


def non_finite(values: Array) -> int:
    """How many values are NaN or infinite."""
    return int(values.size - np.count_nonzero(np.isfinite(values)))


def _storage(workload: Workload) -> Any:
    if workload.dtype not in STORAGE:
        raise UsageProblem(
            "the numpy backend has no %s" % workload.dtype, hint="it knows %s" % ", ".join(sorted(STORAGE))
        )
    return STORAGE[workload.dtype]


def _norm(x: Array, weight: Array, bias: Array) -> Array:
    centred = x - x.mean(axis=-1, keepdims=True)
    variance = (centred * centred).mean(axis=-1, keepdims=True)
    return centred / np.sqrt(variance + np.float32(model.NORM_EPSILON)) * weight + bias


def _gelu(x: Array) -> Array:
    """Exact GELU with the error function of Abramowitz and Stegun, formula 7.1.26 (error below 1.5e-7)."""
    y = np.abs(x) * np.float32(0.5**0.5)
    t = 1 / (1 + np.float32(0.3275911) * y)
    series = np.float32(1.061405429) * t - np.float32(1.453152027)
    series = series * t + np.float32(1.421413741)
    series = series * t - np.float32(0.284496736)
    series = (series * t + np.float32(0.254829592)) * t
    erf = np.copysign(1 - series * np.exp(-y * y), x)
    return x * np.float32(0.5) * (1 + erf)
