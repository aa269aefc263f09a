"""The parent's handles on the ranks: starting them, asking them, and naming those that do not answer."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import time
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from ...node import reading
from .. import program
from ..process import how_ended

_START = "import sys; sys.path.insert(0, sys.argv.pop(1)); from nodeprep.probe.peers.rank import main; main()"
_LOOK_S = 0.1
# The driver gives back gigabytes before a process is gone.
_ENDING_S = 5.0
# How long ranks may take to notice that another one failed in what they do together.
_AFTER_FAILURE_S = 2.0

Message = Dict[str, Any]


class Rank:
    """One process a GPU.

    Attributes:
        number: Its place in the collective.
        address: Of its GPU.
        gone: Why it can no longer be asked, "" while it can.
        started: There is, or was, a process.
    """

    def __init__(self, number: int, spec: Dict[str, Any], environment: Dict[str, str], log: int) -> None:
        self.number = number
        self.address = str(spec["address"])
        self.gone = ""
        self.started = False
        self._buffer = b""
        self._reader, writer = os.pipe()
        try:
            # A process group of its own: a library's helper processes end with it.
            self._process = subprocess.Popen(
                [sys.executable, "-c", _START, program.IMPORT_PATH],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                pass_fds=(writer,),
                env=environment,
                start_new_session=True,
            )
        except OSError as problem:
            self.gone = "no process could be started for it: %s" % problem
            return
        finally:
            os.close(writer)
        self.started = True
        self.tell({**spec, "number": number, "parent": os.getpid(), "descriptor": writer})

    def __str__(self) -> str:
        return "rank %d (GPU %s)" % (self.number, self.address)

    def fileno(self) -> int:
        """For a selector."""
        return self._reader

    def tell(self, message: Message) -> None:
        """Sends one line; to a rank that is gone nothing is sent."""
        if self.gone or self._process.stdin is None:
            return
        # It died before it could read; its end is seen when its answer is waited for.
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
            self._process.stdin.flush()

    def read(self) -> Optional[List[Message]]:
        """Complete messages that have arrived; None at the end."""
        data = os.read(self._reader, 1 << 16)
        if not data:
            return None
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        return [json.loads(line) for line in lines]

    def ended(self) -> None:
        """Takes note that it said its last."""
        try:
            code: Optional[int] = self._process.wait(timeout=_ENDING_S)
        except subprocess.TimeoutExpired:
            self.kill("it fell silent and did not go away")
            return
        self.gone = self.gone or "its process ended: %s" % how_ended(code or 0)

    def kill(self, why: str) -> None:
        """Ends it and all it has started, at once."""
        self.gone = self.gone or why
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def close(self, end: float) -> None:
        """Reaps it and closes the pipes."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=max(0.0, end - time.monotonic()))
        if self._process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()
        os.close(self._reader)


class Crew:
    """All ranks.

    Args:
        ranks: In the order of their numbers.
        stopped: True once the run has been stopped from outside; nobody is waited for then.

    Attributes:
        silent: Ranks that had not answered when the last question's deadline came.
    """

    def __init__(self, ranks: Sequence[Rank], stopped: Callable[[], bool]) -> None:
        self.ranks = tuple(ranks)
        self.stopped = stopped
        self.silent: Tuple[Rank, ...] = ()

    def present(self) -> List[Rank]:
        """Those that can be asked."""
        return [rank for rank in self.ranks if not rank.gone]

    def ask(
        self,
        commands: Dict[int, Message],
        deadline_s: float,
        heard: Callable[[Rank, Message], None] = lambda *_: None,
        *,
        together: bool = False,
    ) -> Dict[int, Dict[str, Any]]:
        """Sends a command to each of some ranks and waits for all answers, as readings.

        A rank that has not answered by the deadline is left as it is; see `silent` and `give_up`.

        Args:
            commands: By rank number.
            deadline_s: For all of them together.
            heard: Called with every message that is no answer.
            together: None can succeed without the others, which are not waited for long after a failure.
        """
        answers: Dict[int, Dict[str, Any]] = {}
        waiting: Dict[int, Rank] = {}
        with selectors.DefaultSelector() as selector:
            for number, command in commands.items():
                rank = self.ranks[number]
                if rank.gone:
                    answers[number] = reading.error("%s: %s" % (rank, rank.gone))
                    continue
                rank.tell(command)
                waiting[number] = rank
                selector.register(rank, selectors.EVENT_READ, rank)
            end = time.monotonic() + deadline_s
            while waiting and not self.stopped() and time.monotonic() < end:
                for key, _ in selector.select(min(_LOOK_S, max(0.0, end - time.monotonic()))):
                    rank = key.data
                    answer = _answer(rank, heard)
                    if answer is None:
                        continue
                    answers[rank.number] = answer
                    selector.unregister(rank)
                    del waiting[rank.number]
                    if together and answer["state"] != "ok":
                        end = min(end, time.monotonic() + _AFTER_FAILURE_S)
        self.silent = () if self.stopped() else tuple(waiting.values())
        for number, rank in waiting.items():
            why = "the run was stopped" if self.stopped() else "no answer within %.0f s" % deadline_s
            answers[number] = reading.error("%s: %s" % (rank, why))
        return answers

    def give_up(self, doing: str) -> None:
        """Ends those that did not answer the last question; the others go on without them."""
        for rank in self.silent:
            rank.kill("it hung in %s and was killed" % doing)

    def close(self) -> None:
        """Ends all of them."""
        for rank in self.present():
            rank.kill("the stage is over")
        end = time.monotonic() + _ENDING_S
        for rank in self.ranks:
            if rank.started:
                rank.close(end)


def _answer(rank: Rank, heard: Callable[[Rank, Message], None]) -> Optional[Dict[str, Any]]:
    """The answer among what has arrived, None when there is none yet."""
    messages = rank.read()
    if messages is None:
        rank.ended()
        return reading.error("%s: %s" % (rank, rank.gone))
    answer = None
    for message in messages:
        if message["kind"] == "answer":
            answer = message["reading"]
        else:
            heard(rank, message)
    return answer
