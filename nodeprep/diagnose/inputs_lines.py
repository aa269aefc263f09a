"""Lines of an input: all of them, or only those that somebody wants, with their right numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from nodeprep.diagnose.inputs_bytes import ByteSource, Truncated
from nodeprep.diagnose.prefilter import Prefilter
from nodeprep.diagnose.reader import RawLine

MAX_LINE_BYTES = 1 << 16
"""Longer than any message; what is longer is a core dump or a binary file."""


class LineSource:
    """The lines of one input.

    Attributes:
        everything: Give all lines; may be changed while lines are taken.
        lines: Lines of the input so far, given or not.
        gaps, notes: What was found wrong with the input itself.
    """

    def __init__(self, data: ByteSource, wanted: Prefilter, on_block: Callable[[], None]) -> None:
        self.everything = True
        self.lines = 0
        self.gaps: list[str] = []
        self.notes: list[str] = []
        self._data = data
        self._wanted = wanted
        self._on_block = on_block
        self._cut = 0
        self._given = 0

    def __iter__(self) -> Iterator[RawLine]:
        last = b""
        for block in self._whole_lines():
            yield from self._of_block(block)
            self._on_block()
            # Kept for its time: it tells how far the log goes.
            last = b"" if self._given == self.lines else block[block.rfind(b"\n", 0, -1) + 1 :]
        if last:
            yield RawLine(self.lines, self._bounded(last.removesuffix(b"\n")))
        if self._cut:
            self.notes.append(f"{self._cut} lines longer than {MAX_LINE_BYTES} bytes were cut")

    def _whole_lines(self) -> Iterator[bytes]:
        """Blocks that end with a line feed, but for the last."""
        rest = b""
        skipping = False
        try:
            for read in self._data.blocks():
                block = read
                if skipping:
                    end = block.find(b"\n")
                    if end < 0:
                        continue
                    block, skipping = block[end:], False
                end = block.rfind(b"\n") + 1
                if end:
                    yield rest + block[:end] if rest else block[:end]
                    rest = block[end:]
                else:
                    rest += block
                if len(rest) > MAX_LINE_BYTES:
                    # Kept one byte too long, so that it is counted as cut when it is given.
                    rest, skipping = rest[: MAX_LINE_BYTES + 1], True
        except Truncated as error:
            self.gaps.append(str(error))
        if rest:
            if not skipping:
                self.notes.append("its last line has no end")
            yield rest

    def _of_block(self, block: bytes) -> Iterator[RawLine]:
        at = 0
        if not self.everything:
            for start, end in self._wanted.lines(block):
                self.lines += block.count(b"\n", at, start) + 1
                at = end + 1
                self._given = self.lines
                yield RawLine(self.lines, self._bounded(block[start:end]))
                if self.everything:
                    break
            else:
                if at < len(block):
                    self.lines += block.count(b"\n", at) + (not block.endswith(b"\n"))
                return
        for data in block[at:].removesuffix(b"\n").split(b"\n") if at < len(block) else ():
            self.lines += 1
            self._given = self.lines
            yield RawLine(self.lines, self._bounded(data))

    def _bounded(self, data: bytes) -> bytes:
        if len(data) <= MAX_LINE_BYTES:
            return data
        self._cut += 1
        return data[:MAX_LINE_BYTES]
