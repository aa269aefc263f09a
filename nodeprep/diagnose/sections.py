"""Parts an input into sections of one format each, by what its lines look like."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from nodeprep.diagnose.inputs_lines import LineSource
from nodeprep.diagnose.inputs_quoting import unwrapped
from nodeprep.diagnose.reader import RawLine, Reader
from nodeprep.diagnose.readers import all_readers
from nodeprep.diagnose.sections_boundaries import Boundary, boundary

LOOK_AHEAD = 64
"""Lines that are looked at to find a format."""
SWITCH_AFTER = 3
"""So many lines of another log format in a row are a section of it, and not a guest in this one."""
MAX_SECTIONS = 2000
"""A file that changes its format more often is a mixture, and is read as one section from there on."""


@dataclass(slots=True, kw_only=True)
class Section:
    """Lines of one format.

    Attributes:
        title: What the input calls it: a command, a file; "" when it says nothing.
        host: That the input says it is of; "" when it says none.
        lines: To be read to the end before the next section is asked for.
    """

    title: str
    reader: Reader
    lines: Iterator[RawLine]
    host: str = ""


def sections(source: LineSource) -> Iterator[Section]:
    """The sections of an input in order, lazily."""
    stream = _Stream(unwrapped(iter(source)))
    count = 0
    while True:
        title, spoken = stream.skip_to_content()
        head = [line.data for line in stream.peek(LOOK_AHEAD)]
        if not head:
            return
        count += 1
        # What a command was says nothing about what its output looks like.
        reader = choose(head[1:] if spoken and len(head) > 1 else head)
        source.everything = reader.whole or reader.opens is None
        lines = _lines(stream, reader, fixed=count >= MAX_SECTIONS)
        yield Section(title=title, reader=reader, lines=lines, host=stream.host)


def choose(head: Sequence[bytes]) -> Reader:
    """The reader that is surest of some first lines; of several equally sure ones the first by name."""
    return max(all_readers().values(), key=lambda reader: reader.sniff(head))


def _lines(stream: _Stream, reader: Reader, *, fixed: bool) -> Iterator[RawLine]:
    """The lines of a section: up to a boundary, or to where another format begins."""
    guests = 0
    guest = ""
    first = True
    for line in stream:
        if not first and boundary(line.data) is not None:
            stream.back(line)
            return
        other = None if fixed or first else _other(line.data, reader)
        first = False
        if other is None:
            if reader.opens is not None and reader.opens.match(line.data):
                guests = 0
        elif other.whole or reader.whole or reader.opens is None:
            stream.back(line)
            return
        else:
            guests = guests + 1 if other.id == guest else 1
            guest = other.id
            if guests >= SWITCH_AFTER:
                stream.back(line)
                return
        yield line


def _other(data: bytes, reader: Reader) -> Reader | None:
    """The other format that a line can only be of."""
    if reader.opens is not None and reader.opens.match(data):
        return None
    for each in _telling():
        if each is not reader and each.opens is not None and each.opens.match(data):
            return each
    return None


@cache
def _telling() -> tuple[Reader, ...]:
    return tuple(reader for reader in all_readers().values() if reader.opens is not None)


class _Stream:
    """Lines that can be looked at before they are taken."""

    def __init__(self, lines: Iterator[RawLine]) -> None:
        self._lines = lines
        self._ahead: list[RawLine] = []
        self.host = ""

    def __iter__(self) -> Iterator[RawLine]:
        return self

    def __next__(self) -> RawLine:
        if self._ahead:
            return self._ahead.pop(0)
        return next(self._lines)

    def back(self, line: RawLine) -> None:
        """Takes a line back."""
        self._ahead.insert(0, line)

    def peek(self, count: int) -> list[RawLine]:
        """The next lines up to a boundary, without taking them."""
        while len(self._ahead) < count:
            line = next(self._lines, None)
            if line is None:
                break
            self._ahead.append(line)
        head: list[RawLine] = []
        for line in self._ahead[:count]:
            if head and boundary(line.data) is not None:
                break
            head.append(line)
        return head

    def skip_to_content(self) -> tuple[str, bool]:
        """Takes empty lines and boundaries that are no content.

        Returns:
            The title they name, and whether a command that names it comes first in the content.
        """
        title = ""
        wants_name = False
        for line in self:
            found = boundary(line.data)
            if found is not None and found.spoken:
                self.back(line)
                return found.title, True
            if found is not None:
                self.host = found.host or self.host
                title, wants_name = _named(found, title)
            elif line.data.strip():
                self.back(line)
                named = line.data.decode("utf-8", "replace").strip() if wants_name else title
                return named, False
        return title, False


def _named(found: Boundary, title: str) -> tuple[str, bool]:
    if found.names_next:
        return "", True
    return found.title or title, False
