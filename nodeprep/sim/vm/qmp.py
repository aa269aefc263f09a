"""A client of QEMU's machine protocol (QMP), one connection a call."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from types import TracebackType
from typing import Any

from nodeprep.sim.vm.programs import VmError


class Qmp:
    """A connection to QEMU; a context manager.

    Args:
        path: QEMU's socket.
        timeout_s: For each answer; None waits for ever.

    Raises:
        VmError: Nobody answers there.
    """

    def __init__(self, path: Path, timeout_s: float | None = 30) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(timeout_s)
        try:
            self._socket.connect(str(path))
            self._stream = self._socket.makefile("rw", encoding="utf-8")
            self._next()
            self.call("qmp_capabilities")
        except OSError as error:
            self._socket.close()
            raise VmError(f"QEMU does not answer at {path}: {error}") from None

    def __enter__(self) -> Qmp:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.close()

    def call(self, command: str, **arguments: Any) -> Any:
        """Run a command and return its result.

        Raises:
            VmError: QEMU refused, or hung up.
        """
        self._stream.write(json.dumps({"execute": command, "arguments": arguments}) + "\n")
        self._stream.flush()
        while True:
            answer = self._next()
            if "error" in answer:
                raise VmError(f"QEMU refused {command}: {answer['error'].get('desc', answer['error'])}")
            if "return" in answer:
                return answer["return"]

    def event(self) -> dict[str, Any] | None:
        """The next event, or None when QEMU has ended."""
        try:
            while "event" not in (answer := self._next()):
                pass
        except (VmError, OSError):
            return None
        return answer

    def hmp(self, command: str) -> str:
        """Run a command of the human monitor and return what it prints.

        Raises:
            VmError: QEMU hung up.
        """
        return str(self.call("human-monitor-command", **{"command-line": command}))

    def _next(self) -> dict[str, Any]:
        line = self._stream.readline()
        if not line:
            raise VmError("QEMU hung up")
        return dict(json.loads(line))
