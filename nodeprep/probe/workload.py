"""What a model does to a node: its shape, with its FLOPs and memory need."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
from dataclasses import dataclass
from typing import Any, Dict, Tuple

from ..node import workload_file
from ..node.workload_file import DTYPE_BYTES
from .problem import UsageProblem

GIB = 1 << 30
# Executed passes of a checkpointed training step in units of a forward pass: forward, forward again
# block by block, and the backward's two products for each of the forward's.
_TRAINING_PASSES = 4


@dataclass(frozen=True)
class Workload:
    """A vision transformer, the input it gets, and how it is run.

    Attributes:
        width: Model width d.
        ffn: Width of the hidden layer of the feed-forward part.
        patch: Edge of a square patch, pixels.
        batch: Images an iteration; with `batch_least` the most of them.
        dtype: "fp16", "bf16" or "fp32".
        seed: Of the weights and the image; the same seed gives the same bits on every backend.
        launch: "explicit": every kernel is launched by the host; "graph": one CUDA graph a pass.
        batch_least: Fewest images of an iteration; 0: always `batch`.
        mode: "inference" or "training" (forward, checkpointed backward, no optimiser).
        gradient_norm_max: Training: the gradient after GELU is scaled down to this norm; 0: it is not.
        input: "resident" on the device, "copied" from pageable memory before each pass, or
            "prefetched" from pinned memory while the pass before runs.
        kernels: What computes LayerNorm, Linear and GELU; see backends/torch_kernels.py.
        attention: Implementation of attention; "auto" leaves it to PyTorch.
        memory_pool_gib: Device memory that the allocator takes before the first pass.
        pcie_direction: Ways of the copies beside the model: "both", "h2d" or "d2h".
        pcie_share: Part of the time that each of these ways is kept busy.
        burst_duty: Part of each period in which the model computes; 1.0: always.
        burst_period_s: Length of a period; 0.0 with a duty of 1.
        duration_s: Least length of the compute phase; the level's is kept where it is longer.
        loops: Least number of measured iterations, likewise.
    """

    name: str
    width: int
    depth: int
    heads: int
    ffn: int
    patch: int
    image_height: int
    image_width: int
    batch: int
    dtype: str
    seed: int
    launch: str
    batch_least: int = 0
    mode: str = "inference"
    gradient_norm_max: float = 0.0
    input: str = "resident"
    kernels: str = "plain"
    attention: str = "auto"
    memory_pool_gib: int = 0
    pcie_direction: str = "both"
    pcie_share: float = 1.0
    burst_duty: float = 1.0
    burst_period_s: float = 0.0
    duration_s: float = 0.0
    loops: int = 0

    @property
    def patches(self) -> int:
        """Patches of one image."""
        return (self.image_height // self.patch) * (self.image_width // self.patch)

    @property
    def tokens(self) -> int:
        """Patches and the class token."""
        return self.patches + 1

    @property
    def pcie_directions(self) -> Tuple[str, ...]:
        """Ways of the copies beside the model, "h2d" and "d2h"."""
        return ("h2d", "d2h") if self.pcie_direction == "both" else (self.pcie_direction,)

    @property
    def training(self) -> bool:
        """True when each iteration has a backward pass."""
        return self.mode == "training"

    @property
    def batches(self) -> Tuple[int, ...]:
        """Batch sizes in the order in which iterations take them, again and again.

        Small and large take turns: 1, 8, 2, 7, ... loads power and memory harder than 1, 2, 3, ...
        """
        sizes = list(range(self.batch_least or self.batch, self.batch + 1))
        order = []
        while sizes:
            order.append(sizes.pop(0))
            if sizes:
                order.append(sizes.pop())
        return tuple(order)

    @property
    def least_iterations(self) -> int:
        """Measured ones: what was asked for, and a reference and a comparison of each batch size."""
        return max(self.loops, 2 * len(self.batches))

    @property
    def flops(self) -> int:
        """Floating-point operations of the largest iteration; see `flops_of`."""
        return self.flops_of(self.batch)

    def flops_of(self, batch: int) -> int:
        """Floating-point operations of one iteration: the matrix products of the blocks.

        depth x (2 T (4 d^2 + 2 d m) + 4 T^2 d) an image and pass; the patch embedding (under 0.1 %) is
        left out. A training step is four passes; the scores that flash attention computes again in its
        backward are left out too.
        """
        t, d, m = self.tokens, self.width, self.ffn
        passes = _TRAINING_PASSES if self.training else 1
        return passes * batch * self.depth * (2 * t * (4 * d * d + 2 * d * m) + 4 * t * t * d)

    @property
    def parameters(self) -> int:
        """Weights and biases of the whole model."""
        d, m = self.width, self.ffn
        block = 4 * d * d + 2 * d * m + (3 * d + d + m + d) + 4 * d
        embedding = 3 * self.patch * self.patch * d + d
        return self.depth * block + embedding + self.tokens * d + d + 2 * d

    @property
    def memory_bytes(self) -> int:
        """Device memory one GPU needs, on the safe side; streaming buffers and context included.

        Weights, six tensors of model width and two of FFN width alive at once (the residual stream,
        its norm, q, k, v and the attention's output; the hidden layer before and after GELU), the
        32-bit counters from which the largest weight is made, the copies' four buffers of 256 MiB,
        1 GiB for the context and libraries. Measured peak of vit-g: 12.3 GiB, estimated here: 15.5.

        Training adds every block's saved input and, for the one block that is run again, its
        activations once more with their gradients, and the gradients of its weights; measured 34.1 GiB for
        vit-g-train, estimated 35.4, each without copies and context. Graphs of a range of batches share
        one pool, which is as large as the largest of them; measured 28.1 GiB for 1 to 8 images,
        estimated 28.0.
        """
        size = DTYPE_BYTES[self.dtype]
        row = self.batch * self.tokens * size
        live = row * (6 * self.width + 2 * self.ffn)
        making = 3 * 4 * max(self.width * self.ffn, 3 * self.width * self.width)
        if self.training:
            live += row * self.width * (self.depth + 2)
            live += row * (12 * self.width + 4 * self.ffn)
            live += size * (4 * self.width * self.width + 2 * self.width * self.ffn)
        if self.launch == "graph":
            # The pool of a graph is its own; what the passes before it used stays with the allocator.
            live *= 2
        copies = 2 if self.input == "prefetched" else 1
        pixels = copies * self.batch * 3 * self.image_height * self.image_width * size
        return max(self.parameters * size + live + making + pixels, self.memory_pool_gib * GIB) + 2 * GIB

    def document(self) -> Dict[str, Any]:
        """The workload as the result names it, with its digest."""
        return {**dataclasses.asdict(self), "digest": self.digest}

    @property
    def digest(self) -> str:
        """SHA-256 (hex) over the parameters, as canonical JSON.

        Keys outside the core stand in it only where they differ from their default, so that a workload
        keeps its digest when a later version learns a new key: docs/adr/0063.
        """
        said = {
            name: value
            for name, value in dataclasses.asdict(self).items()
            if workload_file.KEYS[name].group == "core" or value != workload_file.KEYS[name].default
        }
        text = json.dumps(said, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()


def load(asked: str) -> Workload:
    """A shipped workload by name, or the JSON file at a path.

    Raises:
        UsageProblem: Unknown name, unreadable file, or a file that is not a workload; every fault
            of the file is listed.
    """
    if asked in workload_file.SHIPPED:
        return parse(workload_file.shipped(asked), asked)
    if os.sep not in asked and not asked.endswith(".json"):
        close = workload_file.closest(asked)
        raise UsageProblem(
            "unknown workload %r" % asked,
            hint="did you mean %s?" % close
            if close
            else "shipped are %s; a file of your own ends in .json" % ", ".join(workload_file.SHIPPED),
        )
    try:
        with open(asked, encoding="utf-8") as file:
            data = json.load(file)
    except (OSError, ValueError) as error:
        raise UsageProblem(
            "cannot read the workload %s: %s" % (asked, error),
            hint="a workload file is one JSON object with the keys of docs/workloads.md",
        ) from error
    found = parse(data, asked)
    fault = workload_file.name_fault(data)
    if fault:
        raise UsageProblem(
            "%s: %s" % (asked, fault),
            hint="give yours a name of its own: certificates name the workload they were issued for",
        )
    return found


def parse(data: Any, source: str) -> Workload:
    """A workload from plain data.

    Raises:
        UsageProblem: With all faults at once, each with its key.
    """
    problems = workload_file.faults(data)
    if problems:
        lines = "".join("\n  " + problem for problem in problems)
        raise UsageProblem(
            "%s: %d problem%s%s" % (source, len(problems), "s" * (len(problems) != 1), lines),
            hint="the keys are described in docs/workloads.md",
        )
    return Workload(**workload_file.filled(data))
