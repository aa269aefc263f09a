"""Floods of one message as few events with counts, so that no log can fill the memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TypeAlias

from nodeprep.diagnose.event import Event

MAX_ALIKE = 60
"""How many events of one kind, of one device in one source and boot, are kept one by one: enough for any rule
that compares processes, places or times."""
MAX_FOLDED = 60
"""How many events the rest of a flood may become: each stands for a piece of it, with a first and a last
time, so that what came just before a fault, and how dense a burst was, can mostly still be told."""

_Key: TypeAlias = tuple[str, str, str, str, str]


def folded(events: Iterable[Event]) -> Iterator[Event]:
    """The same events; of a flood the first ones, and then some that stand for several each.

    Lazy, and in order but for the folded ones, which come last. Folding what is folded changes nothing.
    """
    alike: dict[_Key, int] = {}
    rest: dict[_Key, _Rest] = {}
    for event in events:
        line = event.lines[0]
        key = (event.kind, event.device, line.source, line.boot, line.host)
        alike[key] = alike.get(key, 0) + 1
        if alike[key] <= MAX_ALIKE:
            yield event
        else:
            rest.setdefault(key, _Rest()).add(event)
    for each in rest.values():
        yield from each.pieces


class _Rest:
    """The rest of a flood in pieces of equal length.

    By number and not by time: two sources that tell of one flood stamp it differently, and must be cut alike.
    """

    def __init__(self) -> None:
        self.pieces: list[Event] = []
        self._length = 1
        self._in_last = 0

    def add(self, event: Event) -> None:
        """Takes the next event."""
        if self.pieces and self._in_last < self._length:
            self.pieces[-1] = _joined(self.pieces[-1], event)
            self._in_last += 1
            return
        if len(self.pieces) == MAX_FOLDED:
            self.pieces = [_joined(*self.pieces[at : at + 2]) for at in range(0, MAX_FOLDED, 2)]
            self._length *= 2
        self.pieces.append(event)
        self._in_last = 1


def _joined(first: Event, later: Event) -> Event:
    return replace(
        first,
        lines=(first.lines[0], later.lines[-1]),
        count=first.count + later.count,
        last=later.last or later.lines[0],
    )
