"""Floods of one message as one event with a count, so that no log can fill the memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

from nodeprep.diagnose.event import Event

MAX_ALIKE = 60
"""How many events of one kind, of one device in one source and boot, are kept one by one: enough for any rule
that compares processes, places or times."""

_Key: TypeAlias = tuple[str, str, str, str, str]


def folded(events: Iterable[Event]) -> Iterator[Event]:
    """The same events; of a flood the first ones, and then one more with the lines and the count of the rest.

    Lazy, and in order but for the folded ones, which come last. Folding what is folded changes nothing.
    """
    alike: dict[_Key, int] = {}
    rest: dict[_Key, tuple[Event, Event, int]] = {}
    for event in events:
        line = event.lines[0]
        key = (event.kind, event.device, line.source, line.boot, line.host)
        alike[key] = alike.get(key, 0) + 1
        if alike[key] <= MAX_ALIKE:
            yield event
            continue
        first, _, count = rest.get(key, (event, event, 0))
        rest[key] = (first, event, count + event.count)
    for first, last, count in rest.values():
        lines = first.lines if first is last else (first.lines[0], last.lines[-1])
        yield Event(kind=first.kind, lines=lines, device=first.device, data=first.data, count=count)
