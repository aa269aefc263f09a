"""How long each part of the peers stage measures, and how long the parent waits for an answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Tuple

MIB = 1 << 20


@dataclass(frozen=True)
class PeersBudget:
    """Seconds and sizes.

    Attributes:
        host_copy_s: Copies between host and GPU, each direction of each round.
        pair_s: Copies between two GPUs, each of its measurements.
        all_reduce_bytes: Sizes, ascending; the last is the one that is held against a limit.
        all_reduce_s: Time that the repeats of one size should take together.
        repeats: Least and most repeats of one size.
        open_s: From the start of a rank until its device is ready: a cold disk under the import of torch,
            and a CUDA context on every GPU of the node.
        answer_s: Beyond the time that a measurement takes by itself.
        collective_s: One collective, the building of NCCL's channels included, which takes seconds where all
            later ones take milliseconds. A rank that has not arrived by then hangs.
    """

    host_copy_s: float
    pair_s: float
    all_reduce_bytes: Tuple[int, ...]
    all_reduce_s: float
    repeats: Tuple[int, int]
    open_s: float
    answer_s: float
    collective_s: float


_REAL = PeersBudget(
    host_copy_s=0.15,
    pair_s=0.05,
    all_reduce_bytes=(MIB, 32 * MIB, 1024 * MIB),
    all_reduce_s=0.15,
    repeats=(2, 20),
    open_s=180.0,
    answer_s=30.0,
    collective_s=60.0,
)
# The simulated rack moves little data for real and models the time; a rank that hangs there is found soon.
_SIMULATED = PeersBudget(
    host_copy_s=0.0,
    pair_s=0.0,
    all_reduce_bytes=(1024, 4096),
    all_reduce_s=0.0,
    repeats=(1, 1),
    open_s=180.0,
    answer_s=20.0,
    collective_s=20.0,
)


def budget(backend: str) -> PeersBudget:
    """The budget of a backend; no level measures longer, since more of the same says nothing new."""
    return _REAL if backend == "torch" else _SIMULATED
