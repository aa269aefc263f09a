"""One stream of lines to all decoders, in bounded memory."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TypeAlias

from nodeprep.diagnose.decoder import Decoder
from nodeprep.diagnose.event import Event
from nodeprep.diagnose.line import Line

BATCH_LINES = 2048
"""Most sections have fewer wanted lines; only what has more is worth threads."""
_WAITING_BATCHES = 2

_Batch: TypeAlias = Sequence[Line] | None


def decode_all(lines: Iterable[Line], decoders: Sequence[Decoder]) -> Iterator[Event]:
    """Events of all decoders, by decoder.

    A decoder pulls its lines and cannot be paused between them. A flood of a million lines is
    therefore handed to all decoders at once, a batch at a time, each in a thread of its own; keeping
    the lines for one decoder after the other would take gigabytes.
    """
    stream = iter(lines)
    first = list(islice(stream, BATCH_LINES))
    if len(first) < BATCH_LINES:
        for decoder in decoders:
            yield from decoder.decode(iter(first))
        return
    workers = [_Worker(decoder) for decoder in decoders]
    try:
        batch = first
        while batch:
            for worker in workers:
                worker.give(batch)
            batch = list(islice(stream, BATCH_LINES))
    finally:
        for worker in workers:
            worker.give(None)
    for worker in workers:
        yield from worker.events()


class _Worker:
    """A decoder in a thread."""

    def __init__(self, decoder: Decoder) -> None:
        self._batches: queue.Queue[_Batch] = queue.Queue(_WAITING_BATCHES)
        self._decoder = decoder
        self._events: list[Event] = []
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._work, name=f"decode-{decoder.id}", daemon=True)
        self._thread.start()

    def give(self, batch: _Batch) -> None:
        """Hands over lines; None ends them."""
        self._batches.put(batch)

    def events(self) -> list[Event]:
        """What it made of them.

        Raises:
            Exception: What the decoder raised; it should not.
        """
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._events

    def _work(self) -> None:
        try:
            for event in self._decoder.decode(self._lines()):
                self._events.append(event)
        except BaseException as error:
            self._error = error
            for _ in self._lines():
                continue

    def _lines(self) -> Iterator[Line]:
        while (batch := self._batches.get()) is not None:
            yield from batch
