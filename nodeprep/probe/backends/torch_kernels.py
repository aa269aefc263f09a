"""What computes LayerNorm, Linear, GELU and attention: the choices of the keys `kernels` and `attention`.

Each choice has been held against `plain` on an H200; docs/probe.md has the figures. All are
deterministic: the same input gives the same bits every time. Between each other their bits differ.
"""

from __future__ import annotations

import ctypes
from typing import Any, Callable, Dict

import torch
import torch.nn.functional as F  # noqa: N812 - its usual name

from .. import model
from ..problem import ProbeError

Tensor = Any
Attend = Callable[[Tensor, Tensor, Tensor], Tensor]


def norm(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """LayerNorm over the last dimension."""
    return F.layer_norm(x, (x.shape[-1],), weight, bias, model.NORM_EPSILON)


class Plain:
    """One kernel of PyTorch's own for each step. Needs no compiler on the node."""

    def norm_linear(self, x: Tensor, scale: Tensor, shift: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        """Linear(LayerNorm(x))."""
        return F.linear(norm(x, scale, shift), weight, bias)

    def norm_linear_gelu(
        self, x: Tensor, scale: Tensor, shift: Tensor, weight: Tensor, bias: Tensor
    ) -> Tensor:
        """GELU(Linear(LayerNorm(x)))."""
        return F.gelu(F.linear(norm(x, scale, shift), weight, bias))


class CublasLt(Plain):
    """GELU in the epilogue of the matrix product: the hidden layer is written once instead of twice.

    cuBLASLt's epilogue is the tanh approximation of GELU.
    """

    def norm_linear_gelu(
        self, x: Tensor, scale: Tensor, shift: Tensor, weight: Tensor, bias: Tensor
    ) -> Tensor:
        """GELU(Linear(LayerNorm(x)))."""
        rows = norm(x, scale, shift).view(-1, x.shape[-1])
        hidden = torch._addmm_activation(bias, rows, weight.t(), use_gelu=True)
        return hidden.view(*x.shape[:-1], -1)


class Compiled(Plain):
    """torch.compile over both; makes Triton kernels on the node at its first pass, some seconds each."""

    def __init__(self) -> None:
        plain = Plain()
        self.norm_linear = torch.compile(plain.norm_linear, dynamic=False)  # type: ignore[method-assign]
        self.norm_linear_gelu = torch.compile(  # type: ignore[method-assign]
            plain.norm_linear_gelu, dynamic=False
        )


def make(name: str, device: Any) -> Plain:
    """The kernels of a name.

    Raises:
        ProbeError: This machine cannot run them.
    """
    if name in ("triton", "compile"):
        _require_triton(name, device)
    if name == "triton":
        from .torch_triton import Fused  # noqa: PLC0415 - imports Triton

        return Fused()
    return {"plain": Plain, "cublaslt": CublasLt, "compile": Compiled}[name]()


def attention(name: str, device: Any) -> Attend:
    """Scaled dot-product attention over (B, heads, T, d / heads)."""
    if name == "auto" or torch.device(device).type == "cpu":
        plain: Attend = F.scaled_dot_product_attention
        return plain
    from torch.nn.attention import SDPBackend, sdpa_kernel  # noqa: PLC0415

    chosen = {
        "flash": SDPBackend.FLASH_ATTENTION,
        "cudnn": SDPBackend.CUDNN_ATTENTION,
        "efficient": SDPBackend.EFFICIENT_ATTENTION,
    }[name]

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        with sdpa_kernel(chosen):
            return F.scaled_dot_product_attention(q, k, v)

    return attend


def _require_triton(name: str, device: Any) -> None:
    hint = "leave kernels at plain, which needs no compiler, or install Triton with PyTorch's own wheel"
    if torch.device(device).type != "cuda":
        raise ProbeError("kernels: %s needs a GPU" % name, hint=hint)
    try:
        import triton  # noqa: F401, PLC0415 - only whether it is there
    except ImportError as error:
        raise ProbeError("kernels: %s needs Triton: %s" % (name, error), hint=hint) from error


def versions() -> Dict[str, str]:
    """Versions of the libraries below PyTorch that decide bits, where they can be found."""
    found = {}
    cublas = _cublas_version()
    if cublas:
        found["cublas"] = cublas
    try:
        import triton  # noqa: PLC0415

        found["triton"] = str(triton.__version__)
    except ImportError:
        pass
    return found


def _cublas_version() -> str:
    """Of the cuBLASLt that is loaded; "" where it is linked into PyTorch, whose version then says it all."""
    try:
        with open("/proc/self/maps", encoding="utf-8") as maps:
            paths = {line.split()[-1] for line in maps if "libcublasLt.so" in line}
        library = ctypes.CDLL(sorted(paths)[0])
        library.cublasLtGetVersion.restype = ctypes.c_size_t
        return str(library.cublasLtGetVersion())
    except (OSError, IndexError, AttributeError):
        return ""
