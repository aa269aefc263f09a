"""One step of a trial at a time on a node.

A controller that is killed leaves its step running on the node (with pipelining there is no terminal to hang
up), and the next one may begin while grub-mkconfig still writes for the first.
"""

from __future__ import annotations

import fcntl
import os
import time
from typing import Callable

from .boot_loaders import Refusal
from .paths import is_real
from .trial_result import Result, failure

# Below /run, which is there and writable on a node whose root file system is not.
PATH = "/run/nodeprep-trial.lock"
# Longer than any step takes: staging and committing run grub-mkconfig, judging waits for late drivers.
WAIT_S = 300.0
_PAUSE_S = 0.5


def alone(root: str, step: Callable[[], Result], *, path: str = PATH, wait_s: float = WAIT_S) -> Result:
    """Takes a step when nobody else takes one; a simulated root is only read and needs no lock.

    Args:
        root: "/" or a simulated root.
        step: What to do.
        path: The lock; a file that stays.
        wait_s: Seconds that another step gets to end.

    Returns:
        What the step returned, or a failure that says that somebody else is at it.
    """
    if not is_real(root):
        return step()
    try:
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as problem:
        return failure(problem)
    try:
        if not _taken(lock, wait_s):
            return failure(
                Refusal(
                    f"another step of a trial boot has been running here for {wait_s:.0f} s",
                    f"another controller is at work, or a killed one's step hangs: fuser -v {path}",
                )
            )
        return step()
    finally:
        os.close(lock)


def _taken(lock: int, wait_s: float) -> bool:
    end = time.monotonic() + wait_s
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= end:
                return False
            time.sleep(_PAUSE_S)
        else:
            return True
