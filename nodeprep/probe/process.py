"""The parent's handle on a process that it started."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import Any, Dict, List, Optional

from . import program

_START = "import sys; sys.path.insert(0, sys.argv.pop(1)); from nodeprep.probe.%s import main; main()"


class ChildProcess:
    """One running worker or sampler.

    Args:
        module: "worker" or "sampler", in nodeprep.probe.
        spec: What it reads from standard input, without `parent` and `descriptor`.
        environment: Its environment.
        log: File descriptor for what it prints.
        takes_orders: Keeps its standard input open for `order`.

    Raises:
        OSError: It could not be started.
    """

    def __init__(
        self,
        module: str,
        spec: Dict[str, Any],
        environment: Dict[str, str],
        log: int,
        *,
        takes_orders: bool = False,
    ) -> None:
        self._reader, writer = os.pipe()
        self._buffer = b""
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _START % module, program.IMPORT_PATH],
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
        self.order({**spec, "parent": os.getpid(), "descriptor": writer})
        if not takes_orders:
            self._close_orders()

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
        """Closes the pipes."""
        self._close_orders()
        os.close(self._reader)

    def order(self, document: Dict[str, Any]) -> None:
        """Tells it something. One that died cannot read; its exit status says how."""
        assert self._process.stdin is not None  # noqa: S101 - asked for above
        try:
            self._process.stdin.write(json.dumps(document).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            return

    def _close_orders(self) -> None:
        assert self._process.stdin is not None  # noqa: S101 - asked for above
        try:
            self._process.stdin.close()
        except BrokenPipeError:
            # What was left to be written is for nobody any more.
            return


def how_ended(code: int) -> str:
    """An exit status in words."""
    return "killed by %s" % _signal_name(-code) if code < 0 else "exit code %d" % code


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "signal %d" % number
