"""Bytes of an input: decompressed by content, whatever the file's name says."""

from __future__ import annotations

import bz2
import codecs
import gzip
import lzma
import zlib
from collections.abc import Iterator
from contextlib import suppress
from typing import BinaryIO, cast

import zstandard

from nodeprep.diagnose.inputs_input import Input

BLOCK_BYTES = 1 << 20


class Truncated(Exception):
    """The input ends, or breaks, before its end; what came before was read."""


_MAGIC = (
    (b"\x1f\x8b", "gzip"),
    (b"\xfd7zXZ\x00", "xz"),
    (b"BZh", "bzip2"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
)
_UTF16 = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}


class Counted:
    """A stream that knows how much of it was read; what was read first can be seen before."""

    def __init__(self, raw: BinaryIO) -> None:
        self._raw = raw
        self.head = raw.read(8)
        self._pending = self.head
        self.read_bytes = 0

    def read(self, size: int = -1) -> bytes:
        """As any stream's."""
        given, self._pending = self._pending, b""
        if 0 <= size < len(given):
            given, self._pending = given[:size], given[size:]
        elif size != 0:
            given += self._raw.read(size - len(given) if size > 0 else -1)
        self.read_bytes += len(given)
        return given

    def readable(self) -> bool:
        """It is."""
        return True

    def close(self) -> None:
        """Leaves the stream to who opened it."""


class ByteSource:
    """Blocks of an input's text.

    Attributes:
        done_bytes: How much of the stored file was read.
    """

    def __init__(self, source: Input) -> None:
        self._source = source
        self._counted: Counted | None = None

    @property
    def done_bytes(self) -> int:
        """How much of the stored file was read."""
        return self._counted.read_bytes if self._counted else 0

    def blocks(self) -> Iterator[bytes]:
        """Its bytes as UTF-8, or whatever they are if they are no UTF-16.

        Raises:
            Truncated: In place of the rest that cannot be read.
        """
        try:
            with self._source.open() as raw:
                self._counted = Counted(raw)
                yield from _decoded(_decompressed(self._counted))
        except (EOFError, zlib.error, lzma.LZMAError, zstandard.ZstdError, OSError) as error:
            raise Truncated(_words(error)) from error


def _decompressed(stream: Counted) -> Iterator[bytes]:
    kind = next((name for magic, name in _MAGIC if stream.head.startswith(magic)), "")
    raw = cast(BinaryIO, stream)
    opened: gzip.GzipFile | lzma.LZMAFile | bz2.BZ2File
    if kind == "gzip":
        opened = gzip.GzipFile(fileobj=raw)
    elif kind == "xz":
        opened = lzma.LZMAFile(raw)  # noqa: SIM115  # closed by nobody: it owns no file
    elif kind == "bzip2":
        opened = bz2.BZ2File(raw)
    elif kind == "zstd":
        yield from _zstd(stream)
        return
    else:
        while block := stream.read(BLOCK_BYTES):
            yield block
        return
    # read() would drop up to a block of good text before the place where a file is cut off.
    while block := opened.read1(BLOCK_BYTES):
        yield block


def _zstd(stream: Counted) -> Iterator[bytes]:
    """Frames one after another; its library's file object ends a broken frame without a word."""
    decoder = zstandard.ZstdDecompressor().decompressobj()
    begun = False
    while compressed := stream.read(BLOCK_BYTES // 8):
        while compressed:
            begun = True
            block = decoder.decompress(compressed)
            if block:
                yield block
            compressed = b""
            if decoder.eof:
                compressed = decoder.unused_data
                decoder = zstandard.ZstdDecompressor().decompressobj()
                begun = False
    if begun:
        raise EOFError


def _decoded(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """UTF-16, as Windows terminals save what was pasted, as UTF-8."""
    for first in blocks:
        encoding = _UTF16.get(first[:2])
        if encoding is None:
            yield first.removeprefix(codecs.BOM_UTF8)
            break
        decoder = codecs.getincrementaldecoder(encoding)("replace")
        yield decoder.decode(first[2:]).encode()
        for block in blocks:
            yield decoder.decode(block).encode()
    with suppress(StopIteration):
        yield from blocks


def _words(error: Exception) -> str:
    if isinstance(error, EOFError):
        return "it is cut off: its compressed data end early"
    if isinstance(error, OSError) and error.errno is not None:
        return f"it cannot be read to its end: {error.strerror}"
    return f"its compressed data are broken: {error}"
