# SPDX-License-Identifier: Apache-2.0
"""Commands that end: at a deadline their whole process group is killed."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess

# A process in uninterruptible sleep inside a hung driver does not even die of SIGKILL.
_REAP_S = 2.0


def run(command, deadline_s, output):
    """Runs a command with its output in a file.

    Returns:
        "" when it ended with exit code 0, else what happened, in words.
    """
    try:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
    except OSError as error:
        return "%s: %s" % (command[0], error.strerror)
    try:
        code = process.wait(timeout=deadline_s)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        try:
            process.wait(timeout=_REAP_S)
        except subprocess.TimeoutExpired:
            return "no end within %.0f s; process %d does not die and was left behind" % (
                deadline_s,
                process.pid,
            )
        return "no end within %.0f s; killed" % deadline_s
    return "" if code == 0 else "exit code %d" % code
