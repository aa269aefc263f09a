"""The process that loads one GPU. It reports over a pipe and dies with its parent.

It does not react to SIGTERM or SIGINT: everything it knows is already told, so the parent, which
must answer within two seconds whatever CUDA is doing, ends it with SIGKILL.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import traceback
from typing import Any, Dict

from .backends import open_backend
from .problem import ProbeError
from .session import Session, assignment_from
from .turns import Turns

PR_SET_PDEATHSIG = 1


def main() -> None:
    """Reads the assignment from standard input and never returns."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    spec = json.load(sys.stdin)
    _die_with_parent(spec["parent"])
    reporter = _Reporter(spec["descriptor"])
    status = 0
    try:
        _run(spec, reporter)
    except BrokenPipeError:
        status = 1
    except ProbeError as error:
        reporter.send(kind="failed", error=error.message, hint=error.hint)
        status = 1
    except Exception as error:
        traceback.print_exc()
        reporter.send(kind="failed", **_explain(error))
        status = 1
    sys.stdout.flush()
    sys.stderr.flush()
    # The driver cleans up after a process; the libraries' own teardown can hang on a broken GPU.
    os._exit(status)


def _run(spec: Dict[str, Any], reporter: _Reporter) -> None:
    gpu = spec["gpu"]
    if spec["backend"] == "torch":
        _stay_near(gpu["address"])
    backend = open_backend(spec["backend"], spec["root"], gpu)
    try:
        turns = Turns(spec["turns"], gpu["address"], spec["everybody"])
        Session(backend, assignment_from(spec["assignment"]), reporter.send, turns).run()
    finally:
        backend.close()


class _Reporter:
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


def _die_with_parent(parent: int) -> None:
    """Even a parent ended by SIGKILL must not leave a process on the GPU."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def _stay_near(address: str) -> None:
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


def _cpus(text: str) -> set[int]:
    """CPU numbers of a list such as "0-3,8"."""
    found: set[int] = set()
    for part in text.strip().split(","):
        if part:
            first, _, last = part.partition("-")
            found.update(range(int(first), int(last or first) + 1))
    return found


def _explain(error: Exception) -> Dict[str, str]:
    first = (str(error).splitlines() or [""])[0]
    text = "%s: %s" % (type(error).__name__, first)
    if type(error).__name__ == "OutOfMemoryError":
        return {"error": text, "hint": "another process may have taken memory of this GPU; see nvidia-smi"}
    if "CUDA" in first or "cuda" in first:
        return {"error": text, "hint": "look for Xid lines in the kernel log: journalctl -k -g NVRM"}
    return {"error": text, "hint": "probe.log has the full text"}
