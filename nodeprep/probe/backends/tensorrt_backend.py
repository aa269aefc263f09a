"""Real GPUs through a TensorRT engine; memory, copies, digests and the ceiling are PyTorch's as ever.

Optional, by hand only (`probe.pyz run --backend tensorrt`): certificates speak of the torch backend.
"""

from __future__ import annotations

import sys
from typing import Any, Dict

from ..inject import Flip
from ..problem import ProbeError, UsageProblem
from ..workload import Workload
from .torch_backend import TorchBackend

_HINT = (
    "pip install tensorrt, for the CUDA version of this node's PyTorch, into the Python that runs the probe; "
    "or leave --backend at torch, which needs no TensorRT"
)
# What an engine of fixed shapes cannot do; the torch backend does all of it.
_NEEDED = {
    "mode": "inference",
    "launch": "explicit",
    "batch_least": 0,
    "input": "resident",
    "kernels": "plain",
    "attention": "auto",
    "burst_period_s": 0.0,
}


class TensorRTBackend(TorchBackend):
    """The one GPU that CUDA_VISIBLE_DEVICES shows, computing with an engine.

    Raises:
        ProbeError: TensorRT is not installed, or what the torch backend raises.
    """

    name = "tensorrt"

    def __init__(self, gpu: Dict[str, Any]) -> None:
        self._tensorrt_version = require_tensorrt()
        super().__init__(gpu)

    def versions(self) -> Dict[str, str]:
        """PyTorch's, and TensorRT's."""
        return {**super().versions(), "tensorrt": self._tensorrt_version}

    def build(self, workload: Workload) -> None:
        """Makes weights and input with PyTorch, and the engine that reads them; minutes for vit-g.

        Raises:
            UsageProblem: The workload asks for what an engine cannot do.
            ProbeError: It does not fit, or TensorRT cannot build it.
        """
        refuse_what_an_engine_cannot_do(workload)
        super().build(workload)
        self._launcher = EngineLauncher(self._launcher)


class EngineLauncher:
    """Runs the engine where the launcher of the torch backend would run kernels.

    Args:
        plain: That launcher, whose weights and input the engine reads.
    """

    rested_s = 0.0

    def __init__(self, plain: Any) -> None:
        from .tensorrt_engine import Engine  # noqa: PLC0415 - imports tensorrt

        self._plain = plain
        self._model = plain.model
        self._engine = Engine(plain.workload, self._model.device, self._model.image.dtype)
        self._engine.bind_weights(self._model.blocks, self._model.outer)

    def next_batch(self) -> int:
        """Always the workload's."""
        batch: int = self._plain.next_batch()
        return batch

    def launch(self, batch: int) -> Any:
        """Launches a pass: one tensor of its digests, its non-finite and its subnormal values."""
        outputs = self._engine.run(self._model.embed(batch))
        return self._model.summary(outputs)

    def again(self, place: int) -> Any:  # noqa: ARG002 - an engine cannot stop half-way
        """The whole pass once more."""
        return self.launch(self._plain.workload.batch)

    def flip(self, flip: Flip) -> None:
        """Flips a bit of a weight in the memory that the engine reads."""
        self._plain.flip(flip)


def require_tensorrt() -> str:
    """The version of TensorRT.

    Raises:
        ProbeError: It is not installed, or only its type stubs are.
    """
    try:
        import tensorrt  # noqa: PLC0415 - optional, and its absence must be explained
    except ImportError as error:
        raise ProbeError(
            "TensorRT is not installed for %s: %s" % (sys.executable, error), hint=_HINT
        ) from error
    version = getattr(tensorrt, "__version__", "")
    if not version:
        raise ProbeError(
            "TensorRT is not installed for %s: only its name is there" % sys.executable, hint=_HINT
        )
    return str(version)


def refuse_what_an_engine_cannot_do(workload: Workload) -> None:
    """All keys at once.

    Raises:
        UsageProblem: There is one.
    """
    wrong = [
        "%s: must be %r, is %r" % (key, needed, getattr(workload, key))
        for key, needed in _NEEDED.items()
        if getattr(workload, key) != needed
    ]
    if wrong:
        raise UsageProblem(
            "%s: the backend tensorrt cannot run it: %s" % (workload.name, "; ".join(wrong)),
            hint="the backend torch runs every workload",
        )
