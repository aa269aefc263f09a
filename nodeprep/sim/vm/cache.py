"""What is built once and used by many racks, under the hash of everything that goes into it."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


def folder() -> Path:
    """The cache, made with mode 0700: the memory and the host keys of virtual machines are in it."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    found = Path(base, "nodeprep", "vm")
    found.mkdir(parents=True, exist_ok=True)
    found.chmod(0o700)
    return found


def entry(name: str, build: Callable[[Path], None], *, again: bool = False) -> Path:
    """A folder of the cache, built when it is missing.

    Two processes never build the same entry at once, and none sees half an entry: it is built
    beside its place and renamed.

    Args:
        name: Name of the entry; carries the hash of what goes into it.
        build: Fills the empty folder it is given.
        again: Build it anew even when it is there.
    """
    place = folder() / name
    if place.is_dir() and not again:
        return place
    with _locked(name):
        if place.is_dir() and not again:
            return place
        _remove_leftovers(name)
        work = Path(tempfile.mkdtemp(prefix=f".{name}.", dir=folder()))
        try:
            build(work)
            _replace(work, place)
        finally:
            shutil.rmtree(work, ignore_errors=True)
    return place


def _replace(work: Path, place: Path) -> None:
    """Machines that run from the old entry keep their open files."""
    if place.is_dir():
        old = work.with_name(work.name + ".old")
        place.rename(old)
        work.rename(place)
        shutil.rmtree(old, ignore_errors=True)
    else:
        work.rename(place)


def _remove_leftovers(name: str) -> None:
    """What killed builders of this entry left; the lock is held, so nobody is building it."""
    for left in folder().glob(f".{name}.*"):
        if left.is_dir():
            shutil.rmtree(left, ignore_errors=True)


@contextmanager
def _locked(name: str) -> Iterator[None]:
    with Path(folder(), f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
