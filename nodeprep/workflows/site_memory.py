"""sightings.jsonl in the home folder: what this site's GPUs gave, a line for each, only ever appended to.

Several commands may write at once, on one machine or over a network file system, and any of them may
be killed: a line is written in one piece under a lock, carries a checksum, and a line that does not
match its own is left out and counted, never believed.
"""

from __future__ import annotations

import fcntl
import os
import zlib
from collections.abc import Iterable
from pathlib import Path

from nodeprep.errors import DocumentError
from nodeprep.fleet.disk import explained
from nodeprep.model.codec import decode, encode
from nodeprep.model.sighting import Sighting, SiteRecords
from nodeprep.workflows.home import Home

FILE = "sightings.jsonl"


class SiteMemory:
    """The file of one home folder."""

    def __init__(self, home: Home) -> None:
        self.path = home.path / FILE

    def recall(self, node: str = "") -> SiteRecords:
        """All lines that can be read.

        Never raises: a memory that is lost must not keep a node from being judged. The records say so.

        Args:
            node: The machine that will be judged by them.
        """
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return SiteRecords(node=node)
        except OSError as error:
            return SiteRecords(node=node, trouble=f"{self.path}: {error.strerror}")
        sightings: list[Sighting] = []
        damaged = 0
        for line in data.split(b"\n"):
            if not line:
                continue
            try:
                sightings.append(_sighting(line, self.path))
            except DocumentError:
                damaged += 1
        return SiteRecords(node=node, sightings=tuple(sightings), damaged=damaged)

    def remember(self, sightings: Iterable[Sighting]) -> None:
        """Appends lines; they are on the disk when this returns.

        Raises:
            DiskError: The disk is full, read-only or gone.
        """
        lines = b"".join(_line(one) for one in sightings)
        if not lines:
            return
        with explained(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                # A writer that was killed may have left half a line; this one must not become part of it.
                lines = (b"\n" if _is_torn(descriptor) else b"") + lines
                while lines:
                    lines = lines[os.write(descriptor, lines) :]
                os.fsync(descriptor)
            finally:
                os.close(descriptor)


def _is_torn(descriptor: int) -> bool:
    size = os.fstat(descriptor).st_size
    return size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"


def _line(sighting: Sighting) -> bytes:
    text = encode(sighting)
    return b"%08x %s\n" % (zlib.crc32(text), text)


def _sighting(line: bytes, path: Path) -> Sighting:
    checksum, _, text = line.partition(b" ")
    if checksum != b"%08x" % zlib.crc32(text):
        raise DocumentError(f"{path}: a line does not match its checksum")
    return decode(text, Sighting, source=str(path))
