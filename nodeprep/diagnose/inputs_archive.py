"""Archives of logs as folders: nodeprep's own evidence, or what a support case came in."""

from __future__ import annotations

import tarfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import BinaryIO, cast

from nodeprep.diagnose.inputs_input import Input

_SUFFIXES = (".tar", ".tar.gz", ".tgz", ".tar.xz", ".txz", ".tar.bz2", ".tbz2")
MAX_MEMBERS = 5000
"""Archives of logs have some hundred files; a list of millions would be made to do harm."""


def is_archive(name: str) -> bool:
    """Whether a file is taken for an archive, by its name."""
    return name.lower().endswith(_SUFFIXES)


def members(archive: Input, place: Path) -> Iterator[Input]:
    """The regular files in a tar archive, in its order; an archive that is broken comes as one itself.

    Nothing is unpacked to disk, and links are not followed.
    """
    count = 0
    try:
        with tarfile.open(place) as opened:
            for member in opened:
                if not member.isreg():
                    continue
                count += 1
                if count > MAX_MEMBERS:
                    why = f"it holds more than {MAX_MEMBERS} files; the rest is not read"
                    yield replace(archive, unreadable=why)
                    return
                yield Input(
                    name=f"{archive.name}/{member.name}",
                    open=cast("Callable[[], BinaryIO]", partial(_Member, place, member.name)),
                    size_bytes=member.size,
                    written=_time(member.mtime),
                )
    except (tarfile.TarError, EOFError, OSError, ValueError) as error:
        yield replace(archive, unreadable=f"it is no whole archive: {error}")


class _Member:
    """One file of an archive, opened anew: the archive itself stays closed in between."""

    def __init__(self, place: Path, name: str) -> None:
        self._archive = tarfile.open(place)  # noqa: SIM115  # closed with the member
        try:
            member = self._archive.extractfile(name)
        except (KeyError, tarfile.TarError) as error:
            self._archive.close()
            raise OSError(str(error)) from error
        if member is None:
            self._archive.close()
            raise OSError(f"{name} is no file")
        self._member = member

    def __enter__(self) -> _Member:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def read(self, size: int = -1) -> bytes:
        """As any stream's.

        Raises:
            EOFError: The archive ends before the file does.
        """
        try:
            return self._member.read(size)
        except tarfile.TarError as error:
            raise EOFError from error

    def close(self) -> None:
        """Closes the archive too."""
        self._member.close()
        self._archive.close()


def _time(seconds: float) -> datetime | None:
    with suppress(OverflowError, ValueError, OSError):
        return datetime.fromtimestamp(seconds, tz=UTC)
    return None
