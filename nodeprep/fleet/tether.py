"""A launcher that ties ansible-playbook to the controller, so that neither outlives the other.

Run by path with a bare interpreter, not imported: `python -I -S tether.py PARENT_PID PROGRAM ARGUMENT...`.

When the controller is killed with SIGKILL nobody is left to end ansible-playbook, which would go on
polling nodes for a result that no run will ever read. Linux sends the signal asked for here when the
thread that started this process is gone; ansible-playbook ends its workers on SIGTERM. Elsewhere than
on Linux the program is only started.
"""

from __future__ import annotations

import os
import signal
import sys

# Source: linux/prctl.h. The setting survives execve of a program without set-user-ID or capabilities.
_PR_SET_PDEATHSIG = 1


def main(arguments: list[str]) -> None:
    """Becomes the program; does not return."""
    parent, command = int(arguments[0]), arguments[1:]
    if sys.platform == "linux":
        import ctypes  # noqa: PLC0415

        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0) != 0:
            code = ctypes.get_errno()
            sys.exit(f"prctl(PR_SET_PDEATHSIG): {os.strerror(code)}")
        # A controller that died before the call above will not be reported any more.
        if os.getppid() != parent:
            sys.exit("the controller is gone")
    os.execv(command[0], command)  # noqa: S606


if __name__ == "__main__":
    main(sys.argv[1:])
