"""The vision transformer in plain PyTorch, on any device: SDPA, GELU, LayerNorm, no compile step."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional

import torch
import torch.nn.functional as F  # noqa: N812 - its usual name

from .. import model
from ..hashing import MULTIPLIERS, ROW_STEP, SHIFTS, key, signed32, signed64
from ..inject import Flip
from ..workload import Workload

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
    count = 1
    for size in tensor.shape:
        count *= size
    result = torch.empty(count, dtype=DTYPES[workload.dtype], device=device)
    fill_uniform(result, key(workload.seed, prefix + tensor.name), tensor.scale, tensor.offset)
    return result.view(tensor.shape)


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
    """Weights, input and forward pass on one device."""

    def __init__(self, workload: Workload, device: Any) -> None:
        self.workload = workload
        self.device = device
        self.outer = {t.name: make_tensor(workload, t, device) for t in model.embedding(workload)}
        self.blocks: List[Dict[str, Tensor]] = [
            {t.name: make_tensor(workload, t, device, "block%d." % index) for t in model.block(workload)}
            for index in range(workload.depth)
        ]
        self.image = make_tensor(workload, model.image(workload), device)
        self._row_weights = row_weights(workload.batch * workload.tokens, device)

    def forward(
        self, upto: Optional[int] = None, each: Optional[Callable[[Tensor], None]] = None
    ) -> List[Tensor]:
        """Launches a pass and returns 64-bit device scalars without waiting for them.

        Args:
            upto: Stop after this block; None goes to the end.
            each: Called with every block's output (B, T, d) and the final one, for tests.

        Returns:
            One digest a block run; with upto None also that of the final output, then the count of
            non-finite values in the last block's output.
        """
        digests: List[Tensor] = []
        x = self._embed()
        for index, weights in enumerate(self.blocks):
            x = self._block(x, weights)
            digests.append(digest(x, self._row_weights))
            if each:
                each(x)
            if index == upto:
                return digests
        final = self._norm(x, self.outer["norm.weight"], self.outer["norm.bias"])
        digests.append(digest(final, self._row_weights))
        if each:
            each(final)
        return [*digests, x.numel() - torch.count_nonzero(torch.isfinite(x))]

    def flip(self, flip: Flip) -> None:
        """Flips a bit of a weight in place."""
        matrix = self.blocks[flip.block][flip.tensor + ".weight"].view(-1)
        integers = torch.int32 if matrix.element_size() == 4 else torch.int16
        bits = matrix.view(integers)
        mask = 1 << flip.bit
        if flip.bit == 8 * matrix.element_size() - 1:
            mask = -mask
        bits[flip.index : flip.index + 1].bitwise_xor_(mask)

    def _embed(self) -> Tensor:
        w = self.workload
        rows, columns, p = w.image_height // w.patch, w.image_width // w.patch, w.patch
        patches = self.image.view(w.batch, 3, rows, p, columns, p).permute(0, 2, 4, 1, 3, 5)
        flat = patches.reshape(w.batch, w.patches, 3 * p * p)
        x = F.linear(flat, self.outer["patch.weight"], self.outer["patch.bias"])
        token = self.outer["class_token"].expand(w.batch, 1, w.width)
        return torch.cat([token, x], dim=1).add_(self.outer["position"])

    def _block(self, x: Tensor, weights: Dict[str, Tensor]) -> Tensor:
        w = self.workload
        h = self._norm(x, weights["norm1.weight"], weights["norm1.bias"])
        qkv = F.linear(h, weights["qkv.weight"], weights["qkv.bias"])
        q, k, v = qkv.view(w.batch, w.tokens, 3, w.heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
        mixed = F.scaled_dot_product_attention(q, k, v).transpose(1, 2)
        mixed = mixed.reshape(w.batch, w.tokens, w.width)
        x = x.add_(F.linear(mixed, weights["proj.weight"], weights["proj.bias"]))
        h = self._norm(x, weights["norm2.weight"], weights["norm2.bias"])
        h = F.gelu(F.linear(h, weights["fc1.weight"], weights["fc1.bias"]))
        return x.add_(F.linear(h, weights["fc2.weight"], weights["fc2.bias"]))

    def _norm(self, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        return F.layer_norm(x, (self.workload.width,), weight, bias, model.NORM_EPSILON)
