"""Runs NVML in a forked child with a deadline, and tells in which call it got stuck.

A call into a driver whose GPU firmware stopped answering blocks for seconds up to for ever, some of
them in uninterruptible sleep. So nothing in this package calls NVML in a process that matters,
and the child announces every call before it makes it.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import select
import signal
import time
from typing import Any, Callable, Iterator

from .vendor import pynvml

PR_SET_PDEATHSIG = 1
REAP_S = 1.0


class Outcome:
    """What came out of a child.

    Attributes:
        messages: What it reported, in order.
        failure: "" when it came to its end, else why not, in words for the user.
        hung: The deadline passed.
        where: The call it was in when it failed, "" when unknown.
    """

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []
        self.failure = ""
        self.hung = False
        self.where = ""


class Pipe:
    """The child's end: reports and call markers, one JSON document a line."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def mark(self, call: str, subject: str = "") -> None:
        """Announces a call that is about to be made."""
        self._send({"mark": f"{call} on {subject}" if subject else call})

    def report(self, **message: Any) -> None:
        """Hands a result to the parent."""
        self._send(message)

    def _send(self, message: dict[str, Any]) -> None:
        data = json.dumps(message).encode() + b"\n"
        while data:
            data = data[os.write(self._descriptor, data) :]


def run(work: Callable[[Pipe], None], deadline_s: float) -> Outcome:
    """Runs `work` in a child until it ends or the deadline passes.

    Args:
        work: Called in the child with its Pipe; what it reports becomes `Outcome.messages`.
        deadline_s: Seconds from now after which the child is killed.
    """
    outcome = Outcome()
    if _in_use_here():
        outcome.failure = "NVML is in use in this process, and its state does not survive a fork"
        return outcome
    try:
        reader, writer = os.pipe()
        child = os.fork()
    except OSError as error:
        outcome.failure = f"could not start a process for NVML: {error}"
        return outcome
    if child == 0:
        _in_child(work, writer)
    os.close(writer)
    try:
        finished, since = _listen(reader, time.monotonic() + deadline_s, outcome)
    finally:
        os.close(reader)
    if not finished:
        outcome.hung = True
        where = outcome.where or "its start"
        outcome.failure = f"NVML hung in {where} for {time.monotonic() - since:.0f} s; {_kill(child)}"
        return outcome
    _judge_end(child, outcome)
    return outcome


def _in_use_here() -> bool:
    """True when the real library is initialised in this process (seen: in its child NVML then fails)."""
    return isinstance(pynvml.nvmlLib, ctypes.CDLL) and pynvml._nvmlLib_refcount > 0


def _in_child(work: Callable[[Pipe], None], writer: int) -> None:
    """Never returns."""
    status = 1
    try:
        os.setsid()
        _die_with_parent()
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        # A child left behind in uninterruptible sleep must not hold the caller's pipes open: ssh and
        # Ansible would wait for their end of file as long as it lives.
        null = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(null, descriptor)
        for descriptor in _open_descriptors():
            if descriptor > 2 and descriptor != writer:
                _close_quietly(descriptor)
        pipe = Pipe(writer)
        try:
            work(pipe)
            pipe.report(done=True)
            status = 0
        except BaseException as error:
            pipe.report(crash=f"{type(error).__name__}: {error}")
    finally:
        # _exit: no exit handlers or buffers of the parent may run a second time here.
        os._exit(status)


def _die_with_parent() -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _open_descriptors() -> list[int]:
    try:
        return [int(name) for name in os.listdir("/proc/self/fd")]
    except OSError:
        return list(range(3, 256))


def _close_quietly(descriptor: int) -> None:
    try:
        os.close(descriptor)
    except OSError as error:
        # The descriptor that listed /proc/self/fd is gone by now.
        if error.errno != errno.EBADF:
            raise


def _listen(reader: int, end: float, outcome: Outcome) -> tuple[bool, float]:
    """Reads until end of file (True) or the deadline (False); also since when the last call ran."""
    since = time.monotonic()
    for line in _lines(reader, end):
        if line is None:
            return False, since
        message = json.loads(line)
        if "mark" in message:
            outcome.where = message["mark"]
            since = time.monotonic()
        else:
            outcome.messages.append(message)
    return True, since


def _lines(reader: int, end: float) -> Iterator[bytes | None]:
    """Lines until end of file; None, once, when the deadline passes first."""
    buffer = b""
    while True:
        ready, _, _ = select.select([reader], [], [], max(0.0, end - time.monotonic()))
        if not ready:
            yield None
            return
        data = os.read(reader, 65536)
        if not data:
            return
        *complete, buffer = (buffer + data).split(b"\n")
        yield from complete


def _kill(child: int) -> str:
    try:
        os.killpg(child, signal.SIGKILL)
    except ProcessLookupError:
        os.kill(child, signal.SIGKILL)
    return "killed" if _reap(child, REAP_S) is not None else _left_behind(child)


def _reap(child: int, patience_s: float) -> int | None:
    """The exit status of the child, None while it is still there."""
    end = time.monotonic() + patience_s
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return status
        if time.monotonic() > end:
            return None
        time.sleep(0.005)


def _left_behind(child: int) -> str:
    try:
        with open(f"/proc/{child}/stat") as file:
            state = file.read().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        state = "unknown"
    return f"process {child} does not die (state {state}) and was left behind"


def _judge_end(child: int, outcome: Outcome) -> None:
    where = f" in {outcome.where}" if outcome.where else ""
    status = _reap(child, REAP_S)
    if status is None:
        # Its pipe is closed but it is still there: it hangs in the driver's release of the devices.
        outcome.hung = True
        outcome.failure = f"NVML hung while it closed the GPUs; {_kill(child)}"
    elif os.WIFSIGNALED(status):
        name = signal.Signals(os.WTERMSIG(status)).name
        outcome.failure = f"the process that called NVML was ended by {name}{where}"
    else:
        crash = [message["crash"] for message in outcome.messages if "crash" in message]
        if crash:
            outcome.failure = f"{crash[0]}{where}"
        elif not any(message.get("done") for message in outcome.messages):
            outcome.failure = f"the process that called NVML ended early{where}"
    outcome.messages = [m for m in outcome.messages if "crash" not in m and "done" not in m]
