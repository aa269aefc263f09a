"""`journalctl -o export`: fields `NAME=value` on lines of their own, an empty line after each entry.

A value that is no clean text comes as `NAME`, a line feed, its length in eight bytes, and the bytes.
`-o verbose`, with fields indented below a date, and `-o json-pretty`, with them as `"NAME" : "value",`, are
read by the same rule.
Source: systemd, docs/JOURNAL_EXPORT_FORMATS.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec

from nodeprep.diagnose.reader import Item, Parsed, RawLine, Reader
from nodeprep.diagnose.readers._log import read_by
from nodeprep.diagnose.readers.journal_json import fields_of

_OPENS = re.compile(
    rb"__CURSOR=s=|__REALTIME_TIMESTAMP=\d{10,18}$|\s{4}_TRANSPORT=\w+$|"
    rb"\s{1,8}\"(?:_TRANSPORT|__CURSOR)\" ?: ?\""
)
_FIELD = re.compile(rb"\s{0,8}(?P<name>_{0,2}[A-Z][A-Z0-9_]{0,63})=(?P<value>.*)", re.DOTALL)
_VERBOSE = re.compile(rb"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) \d{4}-\d{2}-\d{2} \d{2}:\d{2}:\d{2}\.\d{6} \S+ \[s=")
_PRETTY = re.compile(rb"\s{0,8}\"(?P<name>_{0,2}[A-Z][A-Z0-9_]{0,63})\"\s?:\s?(?P<value>.*)", re.DOTALL)
_LENGTH_BYTES = 8


def _sniff(lines: Sequence[bytes]) -> int:
    fields = sum(1 for line in lines if _FIELD.match(line) or _PRETTY.match(line))
    telling = any(_OPENS.match(line) for line in lines)
    return 95 if telling and fields * 2 >= len(lines) else 0


def _read(source: str, lines: Iterator[RawLine]) -> Iterator[Item]:
    entries: dict[int, Parsed] = {}

    def messages() -> Iterator[RawLine]:
        for number, data, parsed in _entries(lines):
            if parsed is not None:
                entries[number] = parsed
            yield RawLine(number, data)

    current: list[Parsed | None] = [None]

    def numbered() -> Iterator[RawLine]:
        for raw in messages():
            current[0] = entries.pop(raw.number, None)
            yield raw

    yield from read_by(lambda _text: current[0])(source, numbered())


def _entries(lines: Iterator[RawLine]) -> Iterator[tuple[int, bytes, Parsed | None]]:
    """Each entry's message: its line, its bytes, what it is; lines of no entry as themselves."""
    entry: dict[str, object] = {}
    number, quoted = 0, b""
    binary = ""
    for raw in lines:
        if binary:
            entry[binary] = list(raw.data[_LENGTH_BYTES:])
            if binary == "MESSAGE":
                number, quoted = raw.number, raw.data[_LENGTH_BYTES:]
            binary = ""
            continue
        if raw.data.strip() in (b"", b"}", b"},") or _VERBOSE.match(raw.data):
            if number:
                yield number, quoted, fields_of(entry)
            entry, number, quoted = {}, 0, b""
            continue
        field = _field(raw.data)
        if field is not None:
            name, entry[field[0]] = field[0], field[1]
            if name == "MESSAGE":
                number, quoted = raw.number, raw.data
        elif re.fullmatch(rb"_{0,2}[A-Z][A-Z0-9_]{0,63}", raw.data):
            binary = raw.data.decode()
        elif raw.data.startswith(b"-- "):
            yield raw.number, raw.data, None
    if number:
        yield number, quoted, fields_of(entry)


def _field(data: bytes) -> tuple[str, object] | None:
    """Name and value of a field; None when the line is none."""
    field = _FIELD.match(data)
    if field is not None:
        return field["name"].decode(), field["value"].decode("utf-8", "replace")
    field = _PRETTY.match(data)
    if field is None:
        return None
    value = field["value"].strip().removesuffix(b",")
    try:
        return field["name"].decode(), msgspec.json.decode(value)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return field["name"].decode(), value.decode("utf-8", "replace")


READER = Reader(id="journal_export", sniff=_sniff, read=_read, whole=True, opens=_OPENS)
