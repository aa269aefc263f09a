"""How decoders look at lines: none at more of one than any message has."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from nodeprep.diagnose.event import Event
from nodeprep.diagnose.line import Line

_MAX_TEXT_CHARS = 4096
"""The kernel ends a message at 1 KiB, and agents wrap one in JSON; patterns stay fast on what is longer."""


def bounded(lines: Iterable[Line]) -> Iterator[Line]:
    """The same lines, the text of overlong ones cut."""
    for line in lines:
        if len(line.text) > _MAX_TEXT_CHARS:
            yield replace(line, text=line.text[:_MAX_TEXT_CHARS])
        else:
            yield line


def each(
    words: tuple[str, ...], parse: Callable[[Line], Event | None]
) -> Callable[[Iterable[Line]], Iterator[Event]]:
    """A decode function that asks `parse` about each line that holds one of the words."""

    def decode(lines: Iterable[Line]) -> Iterator[Event]:
        for line in bounded(lines):
            if any(word in line.text for word in words):
                event = parse(line)
                if event is not None:
                    yield event

    return decode
