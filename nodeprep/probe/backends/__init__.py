"""One backend a file. Each imports its array library only when it is opened."""

from __future__ import annotations

from typing import Any, Dict

from ._backend import Backend, Bursts, CopyTotals, Iteration, MemoryFault, MemoryRates, MemoryWalk

__all__ = [
    "Backend",
    "Bursts",
    "CopyTotals",
    "Iteration",
    "MemoryFault",
    "MemoryRates",
    "MemoryWalk",
    "open_backend",
]


def open_backend(name: str, root: str, gpu: Dict[str, Any]) -> Backend:
    """The backend of a name, on one GPU.

    Args:
        name: "torch", "tensorrt" or "numpy".
        root: The node's root; numpy serves simulated ones only.
        gpu: The GPU's address, uuid and name.

    Raises:
        ProbeError: Its library is missing, or there is no such GPU.
    """
    if name == "torch":
        from .torch_backend import TorchBackend  # noqa: PLC0415 - torch takes seconds to import

        return TorchBackend(gpu)
    if name == "tensorrt":
        from .tensorrt_backend import TensorRTBackend  # noqa: PLC0415

        return TensorRTBackend(gpu)
    from .numpy_backend import NumpyBackend  # noqa: PLC0415

    return NumpyBackend(root, gpu)
