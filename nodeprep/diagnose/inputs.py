"""Which files there are to read: paths, folders, standard input."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from nodeprep.diagnose.inputs_archive import is_archive, members
from nodeprep.diagnose.inputs_input import Input
from nodeprep.errors import UsageError

__all__ = ["STDIN", "Input", "find_inputs"]

STDIN = "-"


def find_inputs(paths: Iterable[str]) -> tuple[Input, ...]:
    """The files that paths name, those of a folder by name; `-` is standard input.

    What is no regular file below a folder (a socket, a device) is left out; a file that cannot be
    read, and a link to one that is gone, are not, for they are missing from the evidence.

    Raises:
        UsageError: A path does not exist or is a device, or a folder holds no file.
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
    if stat.S_ISCHR(status.st_mode) or stat.S_ISBLK(status.st_mode):
        # /dev/kmsg waits for the next message when it has told all, and others never end.
        raise UsageError(
            f"{path} is a device: reading it may never end",
            hint="dmesg | nodeprep diagnose -, or nodeprep diagnose --host",
        )
    if not stat.S_ISDIR(status.st_mode):
        yield from _expanded(_file(path, place), place, _identity(status))
        return
    files = list(_below(place))
    if not files:
        raise UsageError(f"{path} holds no files", hint="name the files themselves")
    for each in files:
        relative = each.relative_to(place).as_posix() if each.is_relative_to(place) else str(each)
        name = f"{path.rstrip('/')}/{relative}" if several else relative
        made = _file(name, each)
        try:
            identity: tuple[int, int] | str = _identity(each.stat())
        except OSError:
            identity = name
        yield from _expanded(made, each, identity)


def _expanded(
    file: Input, place: Path, identity: tuple[int, int] | str
) -> Iterator[tuple[tuple[int, int] | str, Input]]:
    """The file, or the files in it when it is an archive."""
    if file.unreadable or not is_archive(file.name):
        yield identity, file
        return
    for member in members(file, place):
        yield member.name, member


def _below(folder: Path) -> Iterator[Path]:
    """Files under a folder in the order of their names; folders that cannot be listed come as themselves."""
    found: list[Path] = []

    def refused(error: OSError) -> None:
        found.append(Path(error.filename))

    for parent, _, files in os.walk(folder, onerror=refused):
        places = (Path(parent, name) for name in files)
        found.extend(place for place in places if place.is_file() or not place.exists())
    yield from sorted(found)


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
