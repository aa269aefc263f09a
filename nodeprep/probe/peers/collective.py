"""All-reduce through torch.distributed: NCCL between GPUs, gloo between processes of one CPU."""

from __future__ import annotations

import os
import time
from datetime import timedelta
from typing import Any, Optional, Tuple

import torch
import torch.distributed as dist

from ..backends.torch_model import hash_counters
from ..hashing import key

# The parent ends a rank that hangs; the library must not do so before, in words that name nobody.
_LIBRARY_PATIENCE = timedelta(minutes=30)
_SEED = 79
# Whole numbers below 2^20: sums over up to 16 ranks are exact in single precision, in any order.
_MASK = (1 << 20) - 1
ELEMENT_BYTES = 4


class Collective:
    """One rank's place in the collective.

    Args:
        transport: "nccl" or "gloo".
        meeting: Folder in which the ranks find each other; no address or port is used for that.
        rank: Its number.
        world: How many there are.
        device: Where the data is.
    """

    def __init__(self, transport: str, meeting: str, rank: int, world: int, device: Any) -> None:
        self._rank, self._world, self._device = rank, world, device
        dist.init_process_group(
            transport,
            init_method="file://%s" % os.path.join(meeting, "store"),
            rank=rank,
            world_size=world,
            timeout=_LIBRARY_PATIENCE,
        )

    def reduce(self, size: int, repeats: int, verify: bool) -> Tuple[float, Optional[int]]:
        """Sums `size` bytes over all ranks, `repeats` times.

        Returns:
            Seconds of one, and the wrong elements of the result, None when not looked at: from the
            second time on the data is the sums of sums.
        """
        data = self._data(self._rank, size)
        # Ranks hear of their task milliseconds apart, longer than a small all-reduce takes.
        dist.all_reduce(torch.zeros(1, device=self._device))
        self._wait()
        started = time.monotonic()
        for _ in range(repeats):
            dist.all_reduce(data)
        self._wait()
        seconds = (time.monotonic() - started) / repeats
        if not verify or repeats > 1:
            return seconds, None
        expected = self._data(0, size)
        for rank in range(1, self._world):
            expected += self._data(rank, size)
        return seconds, int((data != expected).sum())

    def _data(self, rank: int, size: int) -> Any:
        bits = hash_counters(key(_SEED, "rank%d" % rank), size // ELEMENT_BYTES, self._device)
        return bits.bitwise_and_(_MASK).to(torch.float32)

    def _wait(self) -> None:
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
