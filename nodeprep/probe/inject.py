"""Faults on request: the proof that the probe would have seen a real one."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Dict, Optional, Sequence

from ..node.workload_file import DTYPE_BYTES
from .hashing import mix
from .problem import UsageProblem
from .workload import Workload

TENSORS = ("qkv", "proj", "fc1", "fc2")
_HINT = "for example flip:block=7,bit=0 or flip:block=7,bit=0,tensor=fc2,index=12345, or hang:rank=1"


@dataclass(frozen=True)
class Flip:
    """One bit of one weight, flipped once and left so.

    Attributes:
        block: Transformer block, from 0.
        bit: Bit of the weight, 0 is the lowest.
        tensor: Which of the block's matrices.
        index: Element of the matrix in row-major order.
        iteration: Measured iteration before which it happens; the first ones, one for each batch size, are
            the references.
        gpu: PCI address of the only GPU it happens on; "" is every GPU.
    """

    block: int
    bit: int
    tensor: str
    index: int
    iteration: int
    gpu: str = ""

    def on(self, address: str) -> bool:
        """Whether it happens on the GPU at a PCI address."""
        return self.gpu in ("", address)


def tensor_size(workload: Workload, tensor: str) -> int:
    """Elements of one of a block's matrices."""
    d, m = workload.width, workload.ffn
    return {"qkv": 3 * d * d, "proj": d * d, "fc1": d * m, "fc2": m * d}[tensor]


def hanging_rank(text: str) -> Optional[int]:
    """The rank of `hang:rank=N`, which shall not come to the all-reduce; None for another fault."""
    match = re.match(r"^hang:rank=(\d+)$", text)
    return int(match.group(1)) if match else None


def require_target(text: str, flip: Optional[Flip], addresses: Sequence[str]) -> None:
    """A fault on a GPU that is not there would happen nowhere, and look as if the probe had found nothing.

    Raises:
        UsageProblem: The fault names a rank or a GPU that these are not.
    """
    rank = hanging_rank(text)
    if rank is not None and len(addresses) < 2:
        raise UsageProblem("%r: a single GPU has no all-reduce" % text, hint=_HINT)
    if rank is not None and rank >= len(addresses):
        raise UsageProblem("%r: rank must be between 0 and %d" % (text, len(addresses) - 1), hint=_HINT)
    if flip is not None and not any(flip.on(address) for address in addresses):
        raise UsageProblem(
            "%r: no GPU of this run is at %s" % (text, flip.gpu),
            hint="they are at %s" % ", ".join(addresses),
        )


def parse(text: str, workload: Workload) -> Optional[Flip]:
    """A flip from `flip:block=7,bit=0[,tensor=fc1][,index=N][,iteration=K][,gpu=ADDRESS]`.

    None for a hanging rank.

    Raises:
        UsageProblem: It is not of that form, or the workload has no such bit.
    """
    if hanging_rank(text) is not None:
        return None
    match = re.match(r"^flip:(\w+=[\w:.]+(?:,\w+=[\w:.]+)*)$", text)
    if not match:
        raise UsageProblem("cannot read the fault %r" % text, hint=_HINT)
    given: Dict[str, str] = {}
    for part in match.group(1).split(","):
        key, _, value = part.partition("=")
        if key not in ("block", "bit", "tensor", "index", "iteration", "gpu") or key in given:
            raise UsageProblem("%r: cannot read %r" % (text, part), hint=_HINT)
        given[key] = value
    numbers = {key: _number(text, key, value) for key, value in given.items() if key not in ("tensor", "gpu")}
    if "block" not in numbers or "bit" not in numbers:
        raise UsageProblem("%r: block and bit are needed" % text, hint=_HINT)
    return make(
        workload,
        block=numbers["block"],
        bit=numbers["bit"],
        tensor=given.get("tensor", "fc1"),
        index=numbers.get("index"),
        iteration=numbers.get("iteration"),
        gpu=given.get("gpu", "").lower(),
    )


def make(
    workload: Workload,
    *,
    block: int,
    bit: int,
    tensor: str = "fc1",
    index: Optional[int] = None,
    iteration: Optional[int] = None,
    gpu: str = "",
) -> Flip:
    """A flip that exists in this workload.

    Without an index a place is chosen by block and bit, without an iteration the second one that is compared.

    Raises:
        UsageProblem: The workload has no such block, bit, matrix or element.
    """
    if tensor not in TENSORS:
        raise UsageProblem("no matrix %r" % tensor, hint="matrices: %s" % ", ".join(TENSORS))
    size = tensor_size(workload, tensor)
    if index is None:
        index = mix(block * 64 + bit) % size
    references = len(workload.batches)
    if iteration is None:
        iteration = references + 2
    limits = {
        "block": (block, 0, workload.depth - 1),
        "bit": (bit, 0, 8 * DTYPE_BYTES[workload.dtype] - 1),
        "index": (index, 0, size - 1),
        # Every reference must have been taken, or the fault would become the truth.
        "iteration": (iteration, references + 1, 1 << 30),
    }
    for key, (value, low, high) in limits.items():
        if not low <= value <= high:
            raise UsageProblem("%s must be between %d and %d, is %d" % (key, low, high, value), hint=_HINT)
    return Flip(block=block, bit=bit, tensor=tensor, index=index, iteration=iteration, gpu=gpu)


def _number(text: str, key: str, value: str) -> int:
    if not value.isdigit():
        raise UsageProblem("%r: %s must be a whole number" % (text, key), hint=_HINT)
    return int(value)
