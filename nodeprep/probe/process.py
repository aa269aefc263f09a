"""The parent's handle on a worker process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import Any, Dict, List, Optional

from . import program

_START = "import sys; sys.path.insert(0, sys.argv.pop(1)); from nodeprep.probe.worker import main; main()"


class WorkerProcess:
    """One running worker.

    Args:
        spec: What the worker reads from standard input, without `parent` and `descriptor`.
        environment: Its environment.
        log: File descriptor for what it prints.

    Raises:
        OSError: It could not be started.
    """

    def __init__(self, spec: Dict[str, Any], environment: Dict[str, str], log: int) -> None:
        self._reader, writer = os.pipe()
        self._buffer = b""
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _START, program.IMPORT_PATH],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                pass_fds=(writer,),
                env=environment,
            )
        except OSError:
            os.close(self._reader)
            raise
        finally:
            os.close(writer)
        self._give({**spec, "parent": os.getpid(), "descriptor": writer})

    def fileno(self) -> int:
        """For a selector."""
        return self._reader

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    def read(self) -> Optional[List[Dict[str, Any]]]:
        """Complete messages that have arrived; None at the end."""
        data = os.read(self._reader, 1 << 16)
        if not data:
            return None
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        return [json.loads(line) for line in lines]

    def kill(self) -> None:
        """Ends it at once."""
        self._process.kill()

    def ended(self, patience_s: float) -> str:
        """How it ended, waiting a little for that; "" when it has not."""
        try:
            code = self._process.wait(timeout=patience_s)
        except subprocess.TimeoutExpired:
            return ""
        return how_ended(code)

    def close(self) -> None:
        """Closes the pipe."""
        os.close(self._reader)

    def _give(self, spec: Dict[str, Any]) -> None:
        assert self._process.stdin is not None  # noqa: S101 - asked for above
        try:
            with self._process.stdin as pipe:
                pipe.write(json.dumps(spec).encode())
        except BrokenPipeError:
            # It died before it could read; its exit status says how.
            return


def how_ended(code: int) -> str:
    """An exit status in words."""
    return "killed by %s" % _signal_name(-code) if code < 0 else "exit code %d" % code


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "signal %d" % number
