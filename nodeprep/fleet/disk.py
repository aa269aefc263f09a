"""Writing to the run folder so that neither a crash nor a full disk leaves half a file."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TypeGuard

from nodeprep.errors import UsageError

_FULL = (errno.ENOSPC, errno.EDQUOT)
_OTHER = "name another folder with NODEPREP_HOME (or with -o, where the command has it)"
_NOT_WRITABLE = (*_FULL, errno.EROFS)


class DiskError(UsageError):
    """The controller's disk cannot take what a run must write."""


def write_durably(path: Path, data: bytes, *, mode: int = 0o644) -> None:
    """Replaces a file in one step: after a power cut it is the old one or the new one.

    Raises:
        DiskError: The disk is full, read-only or gone. The old file, if any, is untouched.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with explained(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        except OSError:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise
        _sync_folder(path.parent)


@contextlib.contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turns an OSError of the block into a DiskError that names the file and what to do."""
    try:
        yield
    except OSError as error:
        raise disk_error(path, error) from error


def disk_error(path: Path, error: OSError) -> DiskError:
    """The DiskError for an OSError met while writing `path`."""
    if error.errno in _FULL:
        return DiskError(
            f"cannot write {path}: the disk is full",
            hint=f"free space on the file system of {path.parent}, or {_OTHER}",
        )
    return DiskError(
        f"cannot write {path}: {error.strerror or error}",
        hint=_OTHER,
    )


def disk_refused(error: BaseException) -> TypeGuard[OSError]:
    """Whether an error of unknown origin can only mean a disk that is full or read-only."""
    return isinstance(error, OSError) and error.errno in _NOT_WRITABLE


def _sync_folder(folder: Path) -> None:
    """Makes the rename itself durable; some network file systems refuse, and then it cannot be."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with contextlib.suppress(OSError):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
