"""Which files there are to read: paths, folders, standard input."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from nodeprep.errors import UsageError

STDIN = "-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """One file to read.

    Attributes:
        name: As the user knows it: the path as typed, or the path below the folder that was typed.
        open: Its raw bytes, from the start.
        size_bytes: As stored; None when it is not known before it was read.
        written: When it was last written; None for what is no file.
        unreadable: Why it cannot be read; "" when it seems that it can.
    """

    name: str
    open: Callable[[], BinaryIO]
    size_bytes: int | None = None
    written: datetime | None = None
    unreadable: str = ""


def find_inputs(paths: Iterable[str]) -> tuple[Input, ...]:
    """The files that paths name, those of a folder by name; `-` is standard input.

    What is no regular file below a folder (a socket, a device) is left out; a file that cannot be
    read is not, for it is missing from the evidence.

    Raises:
        UsageError: A path does not exist, or a folder holds no file.
    """
    given = list(paths)
    found: dict[tuple[int, int] | str, Input] = {}
    for path in given:
        for identity, each in _found(path, several=len(given) > 1):
            found.setdefault(identity, each)
    return tuple(found.values())


def _found(path: str, *, several: bool) -> Iterator[tuple[tuple[int, int] | str, Input]]:
    if path == STDIN:
        yield STDIN, Input(name="stdin", open=lambda: sys.stdin.buffer)
        return
    place = Path(path)
    try:
        status = place.stat()
    except OSError as error:
        raise UsageError(
            f"cannot read {path}: {error.strerror}", hint="name files or folders that exist, or - for stdin"
        ) from error
    if not stat.S_ISDIR(status.st_mode):
        yield _identity(status), _file(path, place)
        return
    files = list(_below(place))
    if not files:
        raise UsageError(f"{path} holds no files", hint="name the files themselves")
    for each in files:
        relative = each.relative_to(place).as_posix() if each.is_relative_to(place) else str(each)
        name = f"{path.rstrip('/')}/{relative}" if several else relative
        made = _file(name, each)
        try:
            yield _identity(each.stat()), made
        except OSError:
            yield name, made


def _below(folder: Path) -> Iterator[Path]:
    """Files under a folder in the order of their names; folders that cannot be listed come as themselves."""
    refused: list[Path] = []
    for parent, folders, files in os.walk(folder, onerror=lambda error: refused.append(Path(error.filename))):
        folders.sort()
        for name in sorted(files):
            each = Path(parent, name)
            if each.is_symlink() and not each.exists():
                continue
            if each.is_file() or not each.exists():
                yield each
    yield from refused


def _file(name: str, place: Path) -> Input:
    try:
        status = place.stat()
    except OSError as error:
        return Input(name=name, open=lambda: place.open("rb"), unreadable=error.strerror or "cannot be read")
    unreadable = ""
    if stat.S_ISDIR(status.st_mode):
        unreadable = "the folder cannot be listed"
    elif not os.access(place, os.R_OK):
        unreadable = "permission denied"
    regular = stat.S_ISREG(status.st_mode)
    return Input(
        name=name,
        open=lambda: place.open("rb"),
        size_bytes=status.st_size if regular else None,
        written=datetime.fromtimestamp(status.st_mtime, tz=UTC) if regular else None,
        unreadable=unreadable,
    )


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino
