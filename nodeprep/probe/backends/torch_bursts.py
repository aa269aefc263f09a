"""A square wave of load: matrix products for a part of each period, and nothing for the rest."""

from __future__ import annotations

import time
from collections import deque
from typing import Any, Deque, List, Optional

import torch

from ..hashing import key
from ._backend import Bursts
from .torch_model import digest, fill_uniform, row_weights

# One takes 1.7 ms on an H200, so bursts end on time; it fills the GPU nearly as well as a larger one.
SIZE = 8192
_QUEUED = 2
_SEED = 78


class Burster:
    """The matrices, and the digest that every burst's product must have.

    Args:
        device: The GPU.
        dtype: Of the matrices.
    """

    def __init__(self, device: Any, dtype: Any) -> None:
        self._a, self._b, self._c = (torch.empty(SIZE * SIZE, dtype=dtype, device=device) for _ in range(3))
        for number, matrix in enumerate((self._a, self._b)):
            fill_uniform(matrix, key(_SEED, "burst%d" % number), 1.0)
        self._a, self._b, self._c = (matrix.view(SIZE, SIZE) for matrix in (self._a, self._b, self._c))
        self._weights = row_weights(SIZE, device)
        self._expected: Optional[int] = None
        self._product_s = self._time_one()

    def run(self, period_s: float, duty: float, count: int) -> Bursts:
        """`count` periods. GPUs of a node keep step by the clock: their edges add up at the power supply."""
        begin = (time.monotonic() // period_s + 1) * period_s
        products = 0
        digests: List[Any] = []
        for number in range(count):
            start = begin + number * period_s
            _sleep_until(start)
            products += self._burst(start + duty * period_s)
            digests.append(digest(self._c, self._weights))
        _sleep_until(begin + count * period_s)
        found: List[int] = torch.stack(digests).tolist()
        first = self._expected is None
        if self._expected is None:
            self._expected = found[0]
        wrong = sum(value != self._expected for value in found)
        return Bursts(count, products, len(found) - int(first), wrong)

    def _burst(self, end: float) -> int:
        """Products until a moment; the last one is done by then."""
        queue: Deque[Any] = deque()
        done = 0
        while not done or time.monotonic() + (len(queue) + 1) * self._product_s < end:
            torch.mm(self._a, self._b, out=self._c)
            mark = torch.cuda.Event(blocking=True)
            mark.record()
            queue.append(mark)
            done += 1
            if len(queue) > _QUEUED:
                queue.popleft().synchronize()
        torch.cuda.synchronize()
        return done

    def _time_one(self) -> float:
        """Seconds of the second product: the first one loads its kernel."""
        started = 0.0
        for _ in range(2):
            started = time.monotonic()
            torch.mm(self._a, self._b, out=self._c)
            torch.cuda.synchronize()
        return time.monotonic() - started


def _sleep_until(moment: float) -> None:
    left = moment - time.monotonic()
    if left > 0:
        time.sleep(left)
