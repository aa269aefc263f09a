"""What every process that the probe starts has in common: it reports over a pipe and dies with its parent."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
from typing import Any, Dict, Set

PR_SET_PDEATHSIG = 1


class Reporter:
    """Messages to the parent, one JSON document a line."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def send(self, **message: Any) -> None:
        """Sends one message.

        Raises:
            BrokenPipeError: The parent is gone.
        """
        data = json.dumps(message).encode() + b"\n"
        while data:
            data = data[os.write(self._descriptor, data) :]


def die_with_parent(parent: int) -> None:
    """Even a parent ended by SIGKILL must not leave a process on the GPU."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def stay_near(address: str) -> None:
    """Runs on the CPUs of the GPU's own NUMA node, so that pinned memory is not behind another socket."""
    try:
        with open("/sys/bus/pci/devices/%s/local_cpulist" % address) as file:
            near = _cpus(file.read())
        allowed = near & os.sched_getaffinity(0)
        if allowed:
            os.sched_setaffinity(0, allowed)
    except (OSError, ValueError) as error:
        # A container may hide the list; copies are then as far away as the scheduler puts them.
        print("not bound to the CPUs near %s: %s" % (address, error), file=sys.stderr)


def _cpus(text: str) -> Set[int]:
    """CPU numbers of a list such as "0-3,8"."""
    found: Set[int] = set()
    for part in text.strip().split(","):
        if part:
            first, _, last = part.partition("-")
            found.update(range(int(first), int(last or first) + 1))
    return found


def explain(error: Exception) -> Dict[str, str]:
    """What an exception means, as "error" and "hint"."""
    first = (str(error).splitlines() or [""])[0]
    text = "%s: %s" % (type(error).__name__, first)
    if type(error).__name__ == "OutOfMemoryError":
        return {"error": text, "hint": "another process may have taken memory of this GPU; see nvidia-smi"}
    if "CUDA" in first or "cuda" in first:
        return {"error": text, "hint": "look for Xid lines in the kernel log: journalctl -k -g NVRM"}
    return {"error": text, "hint": "probe.log has the full text"}
