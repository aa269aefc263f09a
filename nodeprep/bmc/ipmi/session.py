"""One IPMI session, with hard deadlines: the process that speaks is killed when its time is up."""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

from nodeprep.bmc.failures import BmcLoginRefused, BmcRefused, BmcUnreachable
from nodeprep.bmc.password import ENVIRONMENT
from nodeprep.bmc.target import BmcTarget
from nodeprep.errors import Interrupted, NodeprepError

CONNECT_S = 20.0
OPERATION_S = 30.0
# How long an acknowledgement of a command that is sent only once is waited for.
ONCE_S = 10.0
_CHILD = Path(__file__).with_name("child.py")
_LOGOUT_S = 2.0
# How often a waiting conversation looks whether the user has broken it off.
_LOOK_S = 0.2
# Source: IPMI 2.0, table 5-2. A BMC that is busy with the host's own start answers so for seconds.
_NODE_BUSY = 0xC0
_BUSY_PAUSES_S = (0.5, 1.0, 2.0)


class Asking(Protocol):
    """Whoever carries commands to a BMC; what power, sel and identity need of a session."""

    def command(self, netfn: int, command: int, data: Sequence[int] = ()) -> bytes:
        """The answer's data; raises BmcRefused or BmcUnreachable."""

    def command_once(self, netfn: int, command: int, data: Sequence[int] = ()) -> bool:
        """Sends a command that must not be repeated; whether it was acknowledged."""


class IpmiSession:
    """A session with one BMC. A context manager: entering logs in, leaving logs out and ends the process.

    Args:
        connect_s: For the whole login.
        operation_s: From `begin` on, for all commands of one operation together.
        cancelled: Set by another thread to break off; the session then raises Interrupted.
    """

    def __init__(
        self,
        target: BmcTarget,
        *,
        connect_s: float = CONNECT_S,
        operation_s: float = OPERATION_S,
        cancelled: threading.Event | None = None,
    ) -> None:
        self._target = target
        self._connect_s = connect_s
        self._operation_s = operation_s
        self._cancelled = cancelled or threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self._received = b""
        self._deadline = 0.0

    def __enter__(self) -> IpmiSession:
        """Logs in.

        Raises:
            BmcLoginRefused: The BMC does not take the user or the password.
            BmcUnreachable: No answer within `connect_s`.
            NodeprepError: pyghmi is not installed.
        """
        self._process = self._start()
        login = {
            "address": self._target.address,
            "port": self._target.port,
            "user": self._target.user,
            "password": self._target.password,
        }
        try:
            self._deadline = time.monotonic() + self._connect_s
            answer = self._exchange(login, "login")
            if "failed" in answer:
                raise self._no_login(answer)
        except BaseException:
            self._kill()
            raise
        self.begin()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        process = self._process
        if process is not None and process.poll() is None and not self._cancelled.is_set():
            # A session that is not closed stays in the BMC for a minute, and most have four.
            with contextlib.suppress(OSError, subprocess.TimeoutExpired):
                self._send({"end": True})
                process.wait(_LOGOUT_S)
        self._kill()

    def begin(self) -> None:
        """Starts the clock of an operation."""
        self._deadline = time.monotonic() + self._operation_s

    def command(self, netfn: int, command: int, data: Sequence[int] = ()) -> bytes:
        """Asks the BMC; pyghmi repeats a packet that is lost, so only for what may be done twice.

        Raises:
            BmcRefused: The BMC answered with another completion code than 0.
            BmcUnreachable: No answer before the operation's deadline.
            Interrupted: Broken off.
        """
        order = {"netfn": netfn, "command": command, "data": list(data), "once": False}
        what = f"command {netfn:#04x} {command:#04x}"
        return self._data(self._checked(self._patiently(order, what), what), what)

    def sensors(self) -> list[dict[str, Any]]:
        """The sensors as the process that speaks IPMI read them.

        Raises:
            BmcUnreachable: They could not be read, or not in time.
            Interrupted: Broken off.
        """
        answer = self._checked(self._exchange({"sensors": True}, "sensors"), "sensors")
        found: list[dict[str, Any]] = answer["sensors"]
        return found

    def command_once(self, netfn: int, command: int, data: Sequence[int] = ()) -> bool:
        """Sends one packet; whether its answer came. Without it the session is over.

        Raises:
            BmcRefused: The BMC answered with another completion code than 0.
            BmcUnreachable: The session was lost before.
            Interrupted: Broken off.
        """
        seconds = max(0.0, min(ONCE_S, self._deadline - time.monotonic()))
        order = {"netfn": netfn, "command": command, "data": list(data), "once": True, "seconds": seconds}
        what = f"command {netfn:#04x} {command:#04x}"
        self._deadline = max(self._deadline, time.monotonic() + seconds + 1)
        answer = self._patiently(order, what)
        if answer.get("failed") == "unanswered":
            # The answer may still come, and would be taken for that of the next command.
            self._kill()
            return False
        self._data(self._checked(answer, what), what)
        return True

    def _start(self) -> subprocess.Popen[bytes]:
        environment = {name: value for name, value in os.environ.items() if name != ENVIRONMENT}
        return subprocess.Popen(
            [sys.executable, "-P", str(_CHILD)],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            # Ctrl-C is for the owner, who ends the process.
            start_new_session=True,
        )

    def _patiently(self, order: dict[str, Any], what: str) -> dict[str, Any]:
        """The answer; asks again after a pause when the BMC is busy, which also means: nothing was done."""
        for pause in _BUSY_PAUSES_S:
            answer = self._exchange(order, what)
            if answer.get("code") != _NODE_BUSY:
                return answer
            self._cancelled.wait(pause)
            self._look()
        return self._exchange(order, what)

    def _exchange(self, order: dict[str, Any], what: str) -> dict[str, Any]:
        try:
            self._send(order)
        except OSError as error:
            raise self._lost(what, "the session is over") from error
        while b"\n" not in self._received:
            data = self._receive(what)
            if not data:
                raise self._lost(what, "the process that speaks IPMI ended")
            self._received += data
        line, _, self._received = self._received.partition(b"\n")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _send(self, order: dict[str, Any]) -> None:
        if self._process is None or self._process.stdin is None or self._process.stdin.closed:
            raise BrokenPipeError
        self._process.stdin.write(json.dumps(order).encode() + b"\n")
        self._process.stdin.flush()

    def _receive(self, what: str) -> bytes:
        assert self._process is not None  # noqa: S101
        assert self._process.stdout is not None  # noqa: S101
        poll = select.poll()
        poll.register(self._process.stdout, select.POLLIN | select.POLLHUP)
        while not poll.poll(_LOOK_S * 1000):
            self._look()
            if time.monotonic() > self._deadline:
                self._kill()
                raise self._lost(what, "no answer in time")
        return os.read(self._process.stdout.fileno(), 65536)

    def _look(self) -> None:
        if self._cancelled.is_set():
            self._kill()
            raise Interrupted(f"the conversation with the {self._target} was broken off")

    def _checked(self, answer: dict[str, Any], what: str) -> dict[str, Any]:
        if "failed" in answer:
            raise self._lost(what, self._clean(answer["words"]) or "no answer")
        return answer

    def _data(self, answer: dict[str, Any], what: str) -> bytes:
        if answer["code"]:
            words = self._clean(answer["words"]) or "no reason known"
            raise BmcRefused(
                f"the {self._target} refused {what}: {words} (completion code {answer['code']:#04x})",
                code=answer["code"],
            )
        return bytes.fromhex(answer["data"])

    def _no_login(self, answer: dict[str, Any]) -> NodeprepError:
        words = self._clean(answer["words"])
        if answer["failed"] == "import":
            return NodeprepError(f"IPMI needs pyghmi: {words}", hint="pip install pyghmi")
        if not words:
            return BmcUnreachable(
                f"the {self._target} does not answer",
                hint="is the address right, IPMI over LAN switched on in the BMC, and its UDP port open?",
            )
        if words == "Incorrect password provided":
            return BmcLoginRefused(
                f"the {self._target} refused the password of user {self._target.user!r}",
                hint="BMCs lock a user out after some wrong ones: do not try the same again",
            )
        if words.startswith("Unauthorized name"):
            return BmcLoginRefused(
                f"the {self._target} has no user {self._target.user!r} who may log in",
                hint="the user must be enabled for IPMI over LAN, as operator or administrator",
            )
        # No free session, no common cipher suite: not the credentials.
        return BmcUnreachable(f"no login to the {self._target}: {words}")

    def _lost(self, what: str, why: str) -> BmcUnreachable:
        return BmcUnreachable(f"the {self._target} was lost at {what}: {why}")

    def _clean(self, words: str) -> str:
        """Words of pyghmi; they hold no password in any known case, and in no unknown one either."""
        return words.replace(self._target.password, "***")

    def _kill(self) -> None:
        process = self._process
        if process is None:
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
