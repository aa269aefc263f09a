"""A launcher that ties ansible-playbook to the controller, so that neither outlives the other.

Run by path with a bare interpreter, not imported: `python -I -S tether.py PARENT_PID PROGRAM ARGUMENT...`.

When the controller is killed with SIGKILL nobody is left to end ansible-playbook, which would go on
polling nodes for a result that no run will ever read. Linux sends a signal asked for beforehand when
the thread that started a process is gone, and again when the thread that then took its place is: a
controller has several. ansible-playbook ends its workers on SIGTERM, but a second one kills it amid
that work and leaves some of them behind. So this process stays between the two, with one thread: it is
killed as often as Linux likes, and ansible-playbook is told once. Elsewhere than on Linux the program
is only started.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

# Source: linux/prctl.h. The setting survives execve of a program without set-user-ID or capabilities.
_PR_SET_PDEATHSIG = 1


def main(arguments: list[str]) -> int:
    """Runs the program and returns its exit status, 128 + N after signal N, as a shell would."""
    parent, command = int(arguments[0]), arguments[1:]
    if sys.platform != "linux":
        os.execv(command[0], command)  # noqa: S606
    _end_with(parent, signal.SIGKILL)
    own = os.getpid()
    child = os.fork()
    if child == 0:
        _end_with(own, signal.SIGTERM)
        os.execv(command[0], command)  # noqa: S606
    _pid, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def _end_with(parent: int, told_by: signal.Signals) -> None:
    """Asks for a signal to this process at the end of its parent."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_PDEATHSIG, told_by, 0, 0, 0) != 0:
        code = ctypes.get_errno()
        sys.exit(f"prctl(PR_SET_PDEATHSIG): {os.strerror(code)}")
    # A parent that died before the call above will not be reported any more.
    if os.getppid() != parent:
        sys.exit("the controller is gone")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
