"""The tensors of the vision transformer, for every backend: names, shapes, and how they are filled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Iterable, Iterator, List, Tuple

from .workload import Workload

# Raised with any change that gives other bits for the same workload: how weights are made, the order of
# operations, what enters a digest, what "auto" and "plain" stand for. Digests of two numbers are not
# compared with each other.
ARITHMETIC = 1
NORM_EPSILON = 1e-6
_SQRT_12 = 12.0**0.5
_SMALL = 0.02


@dataclass(frozen=True)
class Tensor:
    """One tensor: values uniform around `offset` with standard deviation `deviation`."""

    name: str
    shape: Tuple[int, ...]
    deviation: float
    offset: float = 0.0

    @property
    def count(self) -> int:
        """Elements."""
        count = 1
        for edge in self.shape:
            count *= edge
        return count

    @property
    def scale(self) -> float:
        """Width of the uniform distribution."""
        return self.deviation * _SQRT_12


# Tensors lie in one piece of memory each block, so that their digest is one pass over it. They begin
# where an allocation of their own would, or matrix products would choose other kernels.
_ALIGNED = 256
# Elements of a row of that memory, as its digest reads it.
ROW = 4096


def layout(tensors: Iterable[Tensor]) -> Tuple[List[Tuple[Tensor, int]], int]:
    """Each tensor with its offset in elements, and the length of all, which is whole rows."""
    places: List[Tuple[Tensor, int]] = []
    end = 0
    for tensor in tensors:
        places.append((tensor, end))
        end += -(-tensor.count // _ALIGNED) * _ALIGNED
    return places, -(-end // ROW) * ROW


def embedding(workload: Workload) -> Iterator[Tensor]:
    """What comes before the blocks and after them."""
    d = workload.width
    inputs = 3 * workload.patch * workload.patch
    yield Tensor("patch.weight", (d, inputs), float(inputs) ** -0.5)
    yield Tensor("patch.bias", (d,), _SMALL)
    yield Tensor("class_token", (d,), _SMALL)
    yield Tensor("position", (workload.tokens, d), _SMALL)
    yield Tensor("norm.weight", (d,), _SMALL, 1.0)
    yield Tensor("norm.bias", (d,), _SMALL)


def block(workload: Workload) -> Iterator[Tensor]:
    """One transformer block. Deviations of 1/sqrt(inputs) keep activations of any depth in fp16's range."""
    d, m = workload.width, workload.ffn
    yield Tensor("norm1.weight", (d,), _SMALL, 1.0)
    yield Tensor("norm1.bias", (d,), _SMALL)
    yield Tensor("qkv.weight", (3 * d, d), float(d) ** -0.5)
    yield Tensor("qkv.bias", (3 * d,), _SMALL)
    yield Tensor("proj.weight", (d, d), float(d) ** -0.5)
    yield Tensor("proj.bias", (d,), _SMALL)
    yield Tensor("norm2.weight", (d,), _SMALL, 1.0)
    yield Tensor("norm2.bias", (d,), _SMALL)
    yield Tensor("fc1.weight", (m, d), float(d) ** -0.5)
    yield Tensor("fc1.bias", (m,), _SMALL)
    yield Tensor("fc2.weight", (d, m), float(m) ** -0.5)
    yield Tensor("fc2.bias", (d,), _SMALL)


def image(workload: Workload) -> Tensor:
    """The input (B, 3, H, W); the same in every iteration, or no two outputs could be compared."""
    shape = (workload.batch, 3, workload.image_height, workload.image_width)
    return Tensor("image", shape, 1.0)
