"""One event from several logs is one event; all events in the order in which they happened."""

from __future__ import annotations

from collections.abc import Iterable

from nodeprep.diagnose.event import Event


def merge(events: Iterable[Event]) -> tuple[Event, ...]:
    """Events in order, duplicates merged."""
    return tuple(events)
