"""Ending probes on nodes after the controller was told to stop.

The probe runs detached from Ansible, so that a lost ssh session does not end it; and so Ctrl-C
here does not end it either. The play that does takes longer than a user waits after Ctrl-C, hence
a process of its own that outlives this one. Passwords go to it through a pipe.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from nodeprep.fleet.play import PlayRequest

LOG = "stop.log"


def stop_probes(request: PlayRequest, hosts: Sequence[str], run_dir: Path) -> None:
    """Starts a process that stops the probes of a broken-off play; does not wait for it.

    Best effort: a node that cannot be reached now keeps its probe until the probe's own time is up.
    """
    if not hosts:
        return
    order = {
        "run_dir": str(run_dir),
        "inventory": None if request.inventory is None else str(request.inventory),
        "hosts": list(hosts),
        "forks": request.forks,
        "become": request.become,
        "passwords": dict(request.passwords),
        "extra_vars": dict(request.extra_vars),
    }
    with contextlib.suppress(OSError), (run_dir / LOG).open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "nodeprep.fleet.stopper"],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            # A second Ctrl-C, or the end of the terminal, must not end it.
            start_new_session=True,
        )
        if process.stdin is not None:
            process.stdin.write(json.dumps(order).encode())
            process.stdin.close()
