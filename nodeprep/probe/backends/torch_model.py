"""The vision transformer in PyTorch, on any device: its tensors, its blocks, a forward pass."""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterable, List, Optional, Tuple

import torch
import torch.nn.functional as F  # noqa: N812 - its usual name

from .. import model
from ..hashing import MULTIPLIERS, ROW_STEP, SHIFTS, key, signed32, signed64
from ..inject import Flip
from ..workload import Workload
from . import torch_kernels

DTYPES = {"fp16": torch.float16, "bf16": torch.bfloat16, "fp32": torch.float32}
# Elements hashed at a time: bounds the 32-bit counters' memory beside a model that fills the device.
_CHUNK = 1 << 26

Tensor = Any


def hash_counters(name_key: int, count: int, device: Any, start: int = 0) -> Tensor:
    """The 32-bit hash of start .. start+count-1 under a tensor's key, as signed numbers.

    Signed integers wrap in multiplication as unsigned ones do; only the right shift must be masked,
    because it copies the sign.
    """
    x = torch.arange(start, start + count, dtype=torch.int32, device=device)
    x.bitwise_xor_(signed32(name_key))
    for round_number, shift in enumerate(SHIFTS):
        x.bitwise_xor_((x >> shift).bitwise_and_((1 << (32 - shift)) - 1))
        if round_number < len(MULTIPLIERS):
            x.mul_(signed32(MULTIPLIERS[round_number]))
    return x


def make_tensor(workload: Workload, tensor: model.Tensor, device: Any, prefix: str = "") -> Tensor:
    """A tensor of the model, in the workload's precision."""
    result = torch.empty(tensor.count, dtype=DTYPES[workload.dtype], device=device)
    fill_uniform(result, key(workload.seed, prefix + tensor.name), tensor.scale, tensor.offset)
    return result.view(tensor.shape)


def make_tensors(
    workload: Workload, tensors: Iterable[model.Tensor], device: Any, prefix: str = ""
) -> Tuple[Dict[str, Tensor], Tensor]:
    """Tensors by name, and the one piece of memory (rows, model.ROW) they lie in."""
    places, length = model.layout(tensors)
    memory = torch.zeros(length, dtype=DTYPES[workload.dtype], device=device)
    made = {}
    for tensor, start in places:
        flat = memory[start : start + tensor.count]
        fill_uniform(flat, key(workload.seed, prefix + tensor.name), tensor.scale, tensor.offset)
        made[tensor.name] = flat.view(tensor.shape)
    return made, memory.view(-1, model.ROW)


def fill_uniform(flat: Tensor, name_key: int, scale: float, offset: float = 0.0) -> None:
    """Fills a flat tensor, bit for bit as the numpy backend does.

    Each step is a kernel of its own, so that no compiler fuses a multiply and an add into one rounding.
    """
    for start in range(0, flat.numel(), _CHUNK):
        part = flat[start : start + _CHUNK]
        bits = hash_counters(name_key, part.numel(), flat.device, start)
        values = (bits >> 8).bitwise_and_(0xFFFFFF).to(torch.float32)
        values.mul_(2.0**-24).sub_(0.5).mul_(scale)
        if offset:
            values.add_(offset)
        part.copy_(values)


def row_weights(rows: int, device: Any) -> Tensor:
    """Odd 64-bit weights, one a row."""
    return torch.arange(rows, dtype=torch.int64, device=device).mul_(signed64(ROW_STEP)).bitwise_or_(1)


def digest(values: Tensor, weights: Tensor) -> Tensor:
    """The digest of an output as a 64-bit scalar on the device; see hashing.row_weight.

    Integer sums do not depend on the order of their terms, so the kernel may reduce as it likes.
    """
    words = values.view(torch.int64)
    return words.view(-1, words.shape[-1]).sum(dim=1).mul_(weights).sum()


class TorchModel:
    """Weights, input and forward pass on one device.

    Attributes:
        image: The input (B, 3, H, W) of the largest batch; smaller ones take its first images.
    """

    def __init__(self, workload: Workload, device: Any) -> None:
        self.workload = workload
        self.device = device
        self.blocks: List[Dict[str, Tensor]] = []
        self._memory: List[Tensor] = []
        for index in range(workload.depth):
            weights, memory = make_tensors(workload, model.block(workload), device, "block%d." % index)
            self.blocks.append(weights)
            self._memory.append(memory)
        self.outer, memory = make_tensors(workload, model.embedding(workload), device)
        self._memory.append(memory)
        self.image = make_tensor(workload, model.image(workload), device)
        self._kernels = torch_kernels.make(workload.kernels, device)
        self._attend = torch_kernels.attention(workload.attention, device)
        most = max(workload.batch * workload.tokens, *(len(memory) for memory in self._memory))
        self._row_weights = row_weights(most, device)

    def forward(
        self,
        batch: Optional[int] = None,
        upto: Optional[int] = None,
        each: Optional[Callable[[Tensor], None]] = None,
    ) -> List[Tensor]:
        """Launches a pass and returns 64-bit device scalars without waiting for them.

        Args:
            batch: How many of the images; None takes all.
            upto: Stop after this block; None goes to the end.
            each: Called with every block's output (B, T, d) and the final one, after its digest.

        Returns:
            One digest a block run; with upto None also that of the final output and `weight_digests`, then
            the count of non-finite values in the last block's output.
        """
        digests: List[Tensor] = []
        x = self.embed(batch or self.workload.batch)
        for index, weights in enumerate(self.blocks):
            x = self.block(x, weights)
            digests.append(self.digest(x))
            if each:
                each(x)
            if index == upto:
                return digests
        final = self.last_norm(x)
        digests.append(self.digest(final))
        if each:
            each(final)
        return [*digests, *self.weight_digests(), non_finite(x)]

    def weight_digests(self) -> List[Tensor]:
        """One digest of each block's weights as they lie in memory now, then that of the embedding's.

        A flipped bit of a small weight can vanish in the rounding of every output; it cannot here.
        """
        return [digest(memory, self._row_weights[: len(memory)]) for memory in self._memory]

    def summary(self, outputs: List[Tensor]) -> Tensor:
        """What a pass gives, from the outputs of all blocks and the final one, whoever computed them.

        One tensor: digests as of `forward`, the count of non-finite values, and none subnormal.
        """
        values = [self.digest(x) for x in outputs] + self.weight_digests()
        values += [non_finite(outputs[-2]), torch.zeros((), dtype=torch.int64, device=self.device)]
        return torch.stack([one.reshape(()) for one in values])

    def flip(self, flip: Flip) -> None:
        """Flips a bit of a weight in place."""
        matrix = self.blocks[flip.block][flip.tensor + ".weight"].view(-1)
        integers = torch.int32 if matrix.element_size() == 4 else torch.int16
        bits = matrix.view(integers)
        mask = 1 << flip.bit
        if flip.bit == 8 * matrix.element_size() - 1:
            mask = -mask
        bits[flip.index : flip.index + 1].bitwise_xor_(mask)

    def digest(self, x: Tensor) -> Tensor:
        """The digest of an output of any batch size."""
        return digest(x, self._row_weights[: x.numel() // x.shape[-1]])

    def embed(self, batch: int) -> Tensor:
        """Patches and class token of the first images (B, T, d)."""
        w = self.workload
        rows, columns, p = w.image_height // w.patch, w.image_width // w.patch, w.patch
        patches = self.image[:batch].view(batch, 3, rows, p, columns, p).permute(0, 2, 4, 1, 3, 5)
        flat = patches.reshape(batch, w.patches, 3 * p * p)
        x = F.linear(flat, self.outer["patch.weight"], self.outer["patch.bias"])
        token = self.outer["class_token"].expand(batch, 1, w.width)
        return torch.cat([token, x], dim=1).add_(self.outer["position"])

    def block(self, x: Tensor, weights: Dict[str, Tensor]) -> Tensor:
        """One block; its input is overwritten with its output."""
        x = x.add_(self.attention_part(x, weights))
        hidden = self._kernels.norm_linear_gelu(
            x, weights["norm2.weight"], weights["norm2.bias"], weights["fc1.weight"], weights["fc1.bias"]
        )
        return x.add_(F.linear(hidden, weights["fc2.weight"], weights["fc2.bias"]))

    def attention_part(self, x: Tensor, weights: Dict[str, Tensor]) -> Tensor:
        """What attention adds to the residual stream."""
        w, batch = self.workload, x.shape[0]
        qkv = self._kernels.norm_linear(
            x, weights["norm1.weight"], weights["norm1.bias"], weights["qkv.weight"], weights["qkv.bias"]
        )
        q, k, v = qkv.view(batch, w.tokens, 3, w.heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
        mixed = self._attend(q, k, v).transpose(1, 2).reshape(batch, w.tokens, w.width)
        return F.linear(mixed, weights["proj.weight"], weights["proj.bias"])

    def last_norm(self, x: Tensor) -> Tensor:
        """The final output."""
        return torch_kernels.norm(x, self.outer["norm.weight"], self.outer["norm.bias"])


def non_finite(values: Tensor) -> Tensor:
    """How many values are NaN or infinite, as a scalar on the device."""
    return values.numel() - torch.count_nonzero(torch.isfinite(values))
