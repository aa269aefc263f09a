"""Lone copies are lone: one GPU of the node at a time, and no streaming before all have had their turn.

Two H200 of one host that copied at once reached 52.0 GB/s each where one alone reaches 55.3; a floor for
lone copies would then reject good nodes. Workers share nothing but the file system, so that is where
they take turns.
"""

from __future__ import annotations

import fcntl
import os
import time
from contextlib import contextmanager
from typing import Callable, Iterator, Sequence

FOLDER = ".turns"
_LOOK_S = 0.02
# A worker that died has its marker put by the parent; this is for one that hangs.
PATIENCE_S = 60.0


class Turns:
    """One worker's view of the queue.

    Args:
        folder: Shared by the workers of a run; made by the parent.
        address: Of this worker's GPU.
        everybody: Addresses of all GPUs of the run.
    """

    def __init__(self, folder: str, address: str, everybody: Sequence[str]) -> None:
        self._folder = folder
        self._address = address
        self._everybody = tuple(everybody)

    @contextmanager
    def alone(self) -> Iterator[bool]:
        """Holds the turn; false when it could not be had within the patience."""
        if len(self._everybody) < 2:
            yield True
            return
        with open(os.path.join(self._folder, "lock"), "ab") as lock:
            mine = _wait(lambda: _locked(lock.fileno()))
            try:
                yield mine
            finally:
                mark_done(self._folder, self._address)

    def wait_for_others(self) -> bool:
        """True once every GPU has had its turn; false when one has not within the patience."""
        if len(self._everybody) < 2:
            return True
        return _wait(lambda: all(os.path.exists(_marker(self._folder, one)) for one in self._everybody))


def mark_done(folder: str, address: str) -> None:
    """Notes that a GPU has had its turn, or will never take it."""
    with open(_marker(folder, address), "ab"):
        pass


def _marker(folder: str, address: str) -> str:
    return os.path.join(folder, "done-" + address.replace(":", "-").replace(".", "-"))


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _wait(met: Callable[[], bool]) -> bool:
    end = time.monotonic() + PATIENCE_S
    while not met():
        if time.monotonic() > end:
            return False
        time.sleep(_LOOK_S)
    return True
