"""An all-reduce of the simulated rack's own: the ring algorithm over Unix sockets, in plain Python.

It moves and sums the data for real, as NCCL's ring does, in 2 (n - 1) steps; how fast GPUs would
have been is modelled elsewhere.
"""

from __future__ import annotations

import os
import socket
import time
from array import array
from typing import List, Optional, Tuple

from ..hashing import key, mix

_CODE = "q"
ELEMENT_BYTES = 8
_PATIENCE_S = 30.0
_LOOK_S = 0.01
_SEED = 79


class Ring:
    """One rank's place in the ring: it hears from the one before it and tells the one after it.

    Args:
        meeting: Folder that the ranks share; short, since a socket's path may have 107 bytes.
        rank: Its number.
        world: How many there are, at least two.

    Raises:
        OSError: A neighbour cannot be reached.
    """

    def __init__(self, meeting: str, rank: int, world: int) -> None:
        self._rank, self._world = rank, world
        with socket.socket(socket.AF_UNIX) as door:
            door.bind(os.path.join(meeting, str(rank)))
            door.listen(1)
            door.settimeout(_PATIENCE_S)
            self._after = _call(os.path.join(meeting, str((rank + 1) % world)))
            self._before, _ = door.accept()
        # A neighbour that hangs is the parent's to find; until then this rank waits for it.
        self._before.settimeout(None)

    def reduce(self, size: int, repeats: int, verify: bool) -> Tuple[float, Optional[int]]:
        """As Collective.reduce."""
        started = time.monotonic()
        for _ in range(repeats):
            data = self._sums(size // ELEMENT_BYTES)
        seconds = (time.monotonic() - started) / repeats
        if not verify:
            return seconds, None
        shares = [_data(rank, len(data)) for rank in range(self._world)]
        return seconds, sum(sum(share[at] for share in shares) != data[at] for at in range(len(data)))

    def _sums(self, count: int) -> array[int]:
        """This rank's data, summed with that of all others.

        Raises:
            ConnectionError: A neighbour is gone.
        """
        data = _data(self._rank, count)
        bounds = [count * part // self._world for part in range(self._world + 1)]
        parts = [(bounds[part], bounds[part + 1]) for part in range(self._world)]
        for step in range(self._world - 1):
            start, got = self._step(data, parts, self._rank - step)
            for offset, value in enumerate(got):
                data[start + offset] += value
        for step in range(self._world - 1):
            start, got = self._step(data, parts, self._rank + 1 - step)
            data[start : start + len(got)] = got
        return data

    def _step(self, data: array[int], parts: List[Tuple[int, int]], sent: int) -> Tuple[int, array[int]]:
        """Sends one part on and takes the one before it; where that begins, and what came."""
        first, last = parts[sent % self._world]
        start, end = parts[(sent - 1) % self._world]
        self._after.sendall(data[first:last].tobytes())
        got = array(_CODE)
        got.frombytes(self._receive((end - start) * ELEMENT_BYTES))
        return start, got

    def _receive(self, size: int) -> bytes:
        """Exactly so many bytes.

        Raises:
            ConnectionError: The neighbour is gone.
        """
        data = b""
        while len(data) < size:
            more = self._before.recv(size - len(data))
            if not more:
                raise ConnectionError("the rank before this one is gone")
            data += more
        return data


def _data(rank: int, count: int) -> array[int]:
    start = key(_SEED, "rank%d" % rank)
    return array(_CODE, (mix(start ^ place) for place in range(count)))


def _call(path: str) -> socket.socket:
    """A connection to a neighbour, whose door may not be open yet.

    Raises:
        OSError: It did not open in time.
    """
    end = time.monotonic() + _PATIENCE_S
    while True:
        line = socket.socket(socket.AF_UNIX)
        try:
            line.connect(path)
            return line
        except OSError:
            line.close()
            if time.monotonic() > end:
                raise
            time.sleep(_LOOK_S)
