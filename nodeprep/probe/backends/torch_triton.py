"""LayerNorm, and Linear with GELU in its epilogue, as Triton kernels. Imported only when asked for."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - its usual name
import triton
import triton.language as tl

from .. import model
from .torch_kernels import Plain

Tensor = Any
# Tile of the product: 128 x 256 fills the registers of two warp groups on Hopper; 64 of the inner dimension.
_TILE_M, _TILE_N, _TILE_K = 128, 256, 64
# Tiles that follow each other share columns of the weight in the L2 cache.
_GROUP_M = 8


class Fused(Plain):
    """LayerNorm in one pass over each row; GELU (exact) where the product's sums still are in registers."""

    def norm_linear(self, x: Tensor, scale: Tensor, shift: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        """Linear(LayerNorm(x)); the product is cuBLAS's."""
        return F.linear(_norm(x, scale, shift), weight, bias)

    def norm_linear_gelu(
        self, x: Tensor, scale: Tensor, shift: Tensor, weight: Tensor, bias: Tensor
    ) -> Tensor:
        """GELU(Linear(LayerNorm(x)))."""
        rows = _norm(x, scale, shift).view(-1, x.shape[-1])
        hidden = torch.empty(rows.shape[0], weight.shape[0], dtype=x.dtype, device=x.device)
        m, n, k = rows.shape[0], weight.shape[0], rows.shape[1]
        tiles = triton.cdiv(m, _TILE_M) * triton.cdiv(n, _TILE_N)
        _linear_gelu_kernel[(tiles,)](
            rows,
            weight,
            bias,
            hidden,
            m,
            n,
            k,
            _TILE_M,
            _TILE_N,
            _TILE_K,
            _GROUP_M,
            num_warps=8,
            num_stages=3,
        )
        return hidden.view(*x.shape[:-1], n)


def _norm(x: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    out = torch.empty_like(x)
    width = x.shape[-1]
    block = triton.next_power_of_2(width)
    _norm_kernel[(x.numel() // width,)](
        x, scale, shift, out, width, model.NORM_EPSILON, block, num_warps=8 if block >= 4096 else 4
    )
    return out


@triton.jit  # type: ignore[untyped-decorator]
def _norm_kernel(  # type: ignore[no-untyped-def]  # noqa: PLR0917 - kernels take pointers and sizes
    x, scale, shift, out, width, epsilon, block: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64) * width
    columns = tl.arange(0, block)
    inside = columns < width
    values = tl.load(x + row + columns, mask=inside, other=0.0).to(tl.float32)
    mean = tl.sum(values, axis=0) / width
    centred = tl.where(inside, values - mean, 0.0)
    deviation = tl.sqrt(tl.sum(centred * centred, axis=0) / width + epsilon)
    gain = tl.load(scale + columns, mask=inside, other=0.0).to(tl.float32)
    offset = tl.load(shift + columns, mask=inside, other=0.0).to(tl.float32)
    result = centred / deviation * gain + offset
    tl.store(out + row + columns, result.to(out.dtype.element_ty), mask=inside)


@triton.jit  # type: ignore[untyped-decorator]
def _linear_gelu_kernel(  # type: ignore[no-untyped-def]  # noqa: PLR0917
    a,
    weight,
    bias,
    out,
    m,
    n,
    k,
    tile_m: tl.constexpr,
    tile_n: tl.constexpr,
    tile_k: tl.constexpr,
    group_m: tl.constexpr,
):
    """One tile of GELU(a (m, k) @ weight (n, k)^T + bias)."""
    tile = tl.program_id(0)
    tiles_m, tiles_n = tl.cdiv(m, tile_m), tl.cdiv(n, tile_n)
    group = tile // (group_m * tiles_n)
    first_m = group * group_m
    rows_here = min(tiles_m - first_m, group_m)
    tile_row = first_m + (tile % (group_m * tiles_n)) % rows_here
    tile_column = (tile % (group_m * tiles_n)) // rows_here
    rows = tile_row * tile_m + tl.arange(0, tile_m)
    columns = tile_column * tile_n + tl.arange(0, tile_n)
    inner = tl.arange(0, tile_k)
    # Past the edge the last row or column is read again; only what is inside is stored.
    a_at = a + tl.minimum(rows, m - 1).to(tl.int64)[:, None] * k + inner[None, :]
    w_at = weight + tl.minimum(columns, n - 1).to(tl.int64)[None, :] * k + inner[:, None]
    total = tl.zeros((tile_m, tile_n), dtype=tl.float32)
    for start in range(0, k, tile_k):
        left = inner < k - start
        total = tl.dot(
            tl.load(a_at, mask=left[None, :], other=0.0), tl.load(w_at, mask=left[:, None], other=0.0), total
        )
        a_at += tile_k
        w_at += tile_k
    total += tl.load(bias + tl.minimum(columns, n - 1)).to(tl.float32)[None, :]
    total = 0.5 * total * (1.0 + tl.erf(total * 0.7071067811865476))
    at = out + rows.to(tl.int64)[:, None] * n + columns[None, :]
    tl.store(at, total.to(out.dtype.element_ty), mask=(rows < m)[:, None] & (columns < n)[None, :])
