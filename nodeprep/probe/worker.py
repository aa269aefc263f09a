"""The process that loads one GPU. It reports over a pipe and dies with its parent.

It does not react to SIGTERM or SIGINT: everything it knows is already told, so the parent, which
must answer within two seconds whatever CUDA is doing, ends it with SIGKILL.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import traceback
from typing import Any, Dict

from .backends import open_backend
from .child import Reporter, die_with_parent, explain, stay_near
from .problem import ProbeError
from .session import Session, assignment_from
from .turns import Turns


def main() -> None:
    """Reads the assignment from standard input and never returns."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    spec = json.load(sys.stdin)
    die_with_parent(spec["parent"])
    reporter = Reporter(spec["descriptor"])
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
        reporter.send(kind="failed", **explain(error))
        status = 1
    sys.stdout.flush()
    sys.stderr.flush()
    # The driver cleans up after a process; the libraries' own teardown can hang on a broken GPU.
    os._exit(status)


def _run(spec: Dict[str, Any], reporter: Reporter) -> None:
    gpu = spec["gpu"]
    if spec["backend"] == "torch":
        stay_near(gpu["address"])
    backend = open_backend(spec["engine"], spec["root"], gpu)
    try:
        turns = Turns(spec["turns"], gpu["address"], spec["everybody"])
        Session(backend, assignment_from(spec["assignment"]), reporter.send, turns).run()
    finally:
        backend.close()
