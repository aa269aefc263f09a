"""For families whose every line stands for itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from nodeprep.diagnose.event import Event
from nodeprep.diagnose.line import Line


def each(
    words: tuple[str, ...], parse: Callable[[Line], Event | None]
) -> Callable[[Iterable[Line]], Iterator[Event]]:
    """A decode function that asks `parse` about each line that holds one of the words."""

    def decode(lines: Iterable[Line]) -> Iterator[Event]:
        for line in lines:
            if any(word in line.text for word in words):
                event = parse(line)
                if event is not None:
                    yield event

    return decode
