"""A training step without an optimiser: forward, checkpointed backward, a digest of every gradient.

Weights never change, so every step of every GPU must give the same gradients bit for bit. Each block
keeps its input and nothing else; in the backward it is run again, this time with its gradients.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional

import torch
import torch.nn.functional as F  # noqa: N812 - its usual name

from ..hashing import row_weight, signed64
from . import torch_kernels
from .torch_model import TorchModel, digest, non_finite, row_weights

Tensor = Any
_EPSILON = 1e-6


class TrainingStep:
    """Forward and backward over a model.

    Raises:
        RuntimeError: From PyTorch, while running, when an operation has no deterministic backward.
    """

    def __init__(self, made: TorchModel) -> None:
        self._model = made
        self._limit = made.workload.gradient_norm_max
        tensors = len(made.blocks[0]) + 1
        longest = 3 * max(made.workload.width, made.workload.ffn)
        self._rows = row_weights(max(longest, made.workload.batch * made.workload.tokens), made.device)
        # Each tensor of a block with an odd weight of its own, as rows have in a digest.
        odd = [signed64(row_weight(number)) for number in range(tensors)]
        self._tensor_weights = torch.tensor(odd, dtype=torch.int64, device=made.device)
        self._subnormal: List[Tensor] = []

    def run(self, batch: int, each: Optional[Callable[[Tensor], None]] = None) -> List[Tensor]:
        """Launches a step and returns 64-bit device scalars without waiting for them.

        Args:
            batch: Images.
            each: Called after every block, forward and backward, with its output or its gradient.

        Returns:
            The digests of a forward pass; those of the gradients, one a block, from the last block to
            the first; the count of non-finite values in the last block's output and in the gradient
            that comes out of the first; the count of subnormal values in the gradients after GELU.
        """
        made = self._model
        self._subnormal = []
        inputs: List[Tensor] = []
        digests: List[Tensor] = []
        x = made.embed(batch)
        for weights in made.blocks:
            inputs.append(x.clone())
            x = made.block(x, weights)
            digests.append(made.digest(x))
            if each:
                each(x)
        digests += [made.digest(made.last_norm(x)), *made.weight_digests()]
        bad = non_finite(x)
        gradient = self._gradient_of_loss(x)
        del x
        for weights in reversed(made.blocks):
            gradient, found = self._backward(inputs.pop(), weights, gradient)
            digests.append(found)
            if each:
                each(gradient)
        return [*digests, bad + non_finite(gradient), torch.stack(self._subnormal).sum()]

    def _gradient_of_loss(self, x: Tensor) -> Tensor:
        """The gradient of a loss that is linear in the final output, with the positions as its weights."""
        target = self._model.outer["position"].expand_as(x)
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            final = self._model.last_norm(x)
        return torch.autograd.grad(final, x, target)[0]

    def _backward(self, x: Tensor, weights: Dict[str, Tensor], gradient: Tensor) -> "tuple[Tensor, Tensor]":
        """Runs a block again and through it back: the gradient of its input, and the digest of all."""
        names = list(weights)
        with torch.enable_grad():
            x = x.requires_grad_()
            leaves = {name: weights[name].detach().requires_grad_() for name in names}
            y = x + self._model.attention_part(x, leaves)
            h = torch_kernels.norm(y, leaves["norm2.weight"], leaves["norm2.bias"])
            h = F.gelu(F.linear(h, leaves["fc1.weight"], leaves["fc1.bias"]))
            h = _Truncate.apply(h, self._limit, self._subnormal)
            y = y + F.linear(h, leaves["fc2.weight"], leaves["fc2.bias"])
        del h
        found = torch.autograd.grad(y, [x, *leaves.values()], gradient)
        sums = [self._digest(one) for one in found]
        return found[0], torch.stack(sums).mul_(self._tensor_weights).sum()

    def _digest(self, gradient: Tensor) -> Tensor:
        flat = gradient.contiguous().view(-1, gradient.shape[-1])
        return digest(flat, self._rows[: flat.shape[0]])


class _Truncate(torch.autograd.Function):  # type: ignore[misc]
    """Passes values on; scales their gradient down to a norm, and counts its subnormal values.

    The norm stays on the GPU: the host learns of it no sooner than of anything else in the step.
    """

    @staticmethod
    def forward(context: Any, values: Tensor, limit: float, subnormal: List[Tensor]) -> Tensor:
        context.limit, context.subnormal = limit, subnormal
        return values.view_as(values)

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> "tuple[Tensor, None, None]":
        if context.limit:
            length = torch.linalg.vector_norm(gradient, dtype=torch.float32)
            gradient = gradient * (context.limit / (length + _EPSILON)).clamp_(max=1.0)
        context.subnormal.append(_subnormal(gradient))
        return gradient, None, None


def _subnormal(values: Tensor) -> Tensor:
    size = values.abs()
    return torch.count_nonzero((size < torch.finfo(values.dtype).tiny) & (size > 0))
