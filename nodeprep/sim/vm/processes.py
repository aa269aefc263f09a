"""The processes of a rack: started in sessions of their own, found again by a mark in their environment.

A list of process ids would be out of date when a BMC switches a machine on, and dangerous once ids are
used again. The mark is inherited, and a controller that crashed need not have written anything.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from nodeprep.sim.vm.programs import VmError

_MARK = "NODEPREP_VM_RACK"
_MACHINE = "NODEPREP_VM_MACHINE"
_STEP_S = 0.05


def start(argv: Sequence[str], rack: Path, machine: str, log: Path) -> int:
    """Start a process of the rack that outlives this one.

    Args:
        machine: Name of the machine it belongs to.
        log: File its output is added to.

    Returns:
        Its process id.
    """
    environment = {**os.environ, _MARK: str(rack), _MACHINE: machine, "PYTHONPATH": _import_path()}
    with log.open("ab") as out:
        process = subprocess.Popen(
            list(argv),
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
            cwd=rack,
        )
    return process.pid


def find(rack: Path, machine: str = "") -> list[int]:
    """Process ids of a rack, or of one machine of it."""
    wanted = {f"{_MARK}={rack}".encode()}
    if machine:
        wanted.add(f"{_MACHINE}={machine}".encode())
    found = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            environment = (folder / "environ").read_bytes()
        except OSError:  # another user's, or just ended
            continue
        if wanted <= set(environment.split(b"\0")):
            found.append(int(folder.name))
    return found


def stop(rack: Path, machine: str = "", timeout_s: float = 10) -> int:
    """End the processes of a rack or of one machine, and wait until they have ended.

    Returns:
        How many there were.

    Raises:
        VmError: Some would not end, not even when killed.
    """
    first = find(rack, machine)
    # The BMC first waits a minute for a machine to power off; here the power cord is pulled.
    deadline = time.monotonic() + timeout_s
    while left := find(rack, machine):
        if time.monotonic() > deadline:
            raise VmError(f"processes {', '.join(map(str, left))} of {rack} do not end")
        for pid in left:
            _kill(pid)
        _reap()
        time.sleep(_STEP_S)
    return len(first)


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _reap() -> None:
    """Children of this very process stay in /proc until they are waited for, with an empty environment."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return


def _import_path() -> str:
    """The chassis is started by `python -m` from another folder."""
    here = str(Path(__file__).parents[3])
    return os.pathsep.join(filter(None, (here, os.environ.get("PYTHONPATH"))))
