"""What a run of the probe was asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional, Tuple

from ..node.workload_file import DTYPE_BYTES
from .inject import Flip
from .levels import Budget
from .workload import Workload


@dataclass(frozen=True)
class Options:
    """A checked command line.

    Attributes:
        root: "/" for the machine itself; any other root is simulated, and so is its result.
        backend: "torch" or "numpy"; follows from the root.
        engine: What computes the model: the backend itself, or "tensorrt" in place of "torch".
        out: Result folder.
        gpus: PCI addresses; empty means all.
        inject: The fault as it was typed, "" for none; `flip` is the same, parsed.
        run: Id of the run this is part of, "" for none; stands in the result.
        share: Load a GPU although others compute on it.
    """

    root: str
    backend: str
    workload: Workload
    level: str
    budget: Budget
    out: str
    gpus: Tuple[str, ...]
    inject: str
    flip: Optional[Flip]
    share: bool
    nvml_deadline_s: float
    run: str = ""
    engine: str = ""

    @property
    def computes(self) -> str:
        """The name of the backend that the result has."""
        return self.engine or self.backend

    @property
    def memory_bytes(self) -> int:
        """Free device memory that one GPU must have; simulated ones need none."""
        if self.simulated:
            return 0
        # An engine writes the outputs of all blocks side by side.
        work = self.workload
        outputs = (work.depth + 1) * work.batch * work.tokens * work.width * DTYPE_BYTES[work.dtype]
        return work.memory_bytes + (outputs if self.engine == "tensorrt" else 0)

    def flip_on(self, address: str) -> Optional[Flip]:
        """The flip that a GPU is to see, None for none."""
        return self.flip if self.flip and self.flip.on(address) else None

    @property
    def simulated(self) -> bool:
        """True for anything but the machine itself."""
        return self.backend != "torch"
