"""Reading texts as the engine does, for the tests of this folder."""

from __future__ import annotations

import io
from datetime import UTC, datetime
from typing import BinaryIO, cast

from nodeprep.diagnose.engine import diagnose
from nodeprep.diagnose.inputs_input import Input
from nodeprep.diagnose.line import Line
from nodeprep.diagnose.reader import Item, RawLine, Reader, Remark
from nodeprep.diagnose.readers import all_readers
from nodeprep.diagnose.sections import choose
from nodeprep.model.diagnosis import Diagnosis

WRITTEN = datetime(2026, 11, 30, tzinfo=UTC)


def as_input(name: str, data: bytes, written: datetime | None = WRITTEN) -> Input:
    """A file with some content."""
    return Input(
        name=name, open=lambda: cast(BinaryIO, io.BytesIO(data)), size_bytes=len(data), written=written
    )


def told(**files: bytes | str) -> Diagnosis:
    """The diagnosis of files; "_" in a name stands for "."."""
    inputs = [
        as_input(name.replace("_", "."), data.encode() if isinstance(data, str) else data)
        for name, data in files.items()
    ]
    return diagnose(inputs)


def reader_of(text: str) -> Reader:
    """The reader that the first lines choose."""
    return choose([line.encode() for line in text.splitlines()][:64])


def items(reader: str, text: str) -> list[Item]:
    """What a reader makes of a text."""
    raw = (RawLine(number, line.encode()) for number, line in enumerate(text.splitlines(), start=1))
    return list(all_readers()[reader].read("log", raw))


def lines(reader: str, text: str) -> list[Line]:
    """The lines among it."""
    return [item for item in items(reader, text) if isinstance(item, Line)]


def gaps(reader: str, text: str) -> list[str]:
    """The gaps among it."""
    return [item.gap for item in items(reader, text) if isinstance(item, Remark) and item.gap]
