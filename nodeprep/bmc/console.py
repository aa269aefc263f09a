"""The tail of a console log that something else (conserver, a terminal server) writes on this machine."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from nodeprep.bmc.target import absolute_path
from nodeprep.errors import NodeprepError, Problem

VARIABLE = "nodeprep_console_log"
MOST_BYTES = 16 * 1024
# A big server's kernel says some 100 KiB on its console, and the one after it as much again.
SEARCHED_BYTES = 1024 * 1024
_FINGERPRINT_BYTES = 64
# Programs on a serial line place their words on a screen; without the break they would run together.
_PLACED = re.compile(r"\x1b\[\d*(?:;\d*)?[Hf]")
# Source: ECMA-48: control sequences, control strings, other escape sequences.
_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[ -/]*[0-~]|\x9b[0-?]*[ -/]*[@-~]"
)
_BREAKS = re.compile(r"\r+\n|\r")
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
# What follows the last words of a boot: a boot loader's menu or message, or the next kernel's first words.
_NEXT_BOOT = re.compile(r"GNU GRUB|Booting `|Linux version \d")
_BLANK_LINES = re.compile(r"\n(?:[ \t]*\n){2,}")


class ConsoleUnreadable(NodeprepError):
    """The console log cannot be read; the reason is in the words of the system."""


@dataclass(frozen=True, slots=True)
class ConsoleMark:
    """A place in a console log, so that later only what came after it is told. Plain, to be kept as JSON.

    Attributes:
        inode: 0 when there was no file yet.
        fingerprint: Of the bytes just before the place. A log that was emptied and has grown past the
            place again has the same inode and looks longer, as a rotation with copytruncate does.
    """

    device: int
    inode: int
    offset: int
    fingerprint: str


@dataclass(frozen=True, slots=True)
class ConsoleNews:
    """What a console said since a mark.

    Attributes:
        text: The end of it, without escape sequences; at most about MOST_BYTES.
        note: What is missing or uncertain about it; empty when nothing is.
    """

    text: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class ConsoleLog:
    """A console log on this machine."""

    path: Path

    def mark(self) -> ConsoleMark:
        """The present end of the log. A log that is not there yet is marked as such.

        Raises:
            ConsoleUnreadable: It is there and cannot be read.
        """
        try:
            file = _open(self.path)
        except FileNotFoundError:
            return ConsoleMark(0, 0, 0, "")
        except OSError as error:
            raise _unreadable(self.path, error) from error
        with file:
            about = os.fstat(file.fileno())
            return ConsoleMark(about.st_dev, about.st_ino, about.st_size, _fingerprint(file, about.st_size))

    def since(self, mark: ConsoleMark, *, most_bytes: int = MOST_BYTES) -> ConsoleNews:
        """What was written after the mark, its end if it is long.

        Raises:
            ConsoleUnreadable: The log is not there, or cannot be read.
        """
        try:
            return self._since(mark, most_bytes)
        except FileNotFoundError as error:
            when = "it was there at the mark" if mark.inode else "nor was it there at the mark"
            raise ConsoleUnreadable(
                f"there is no console log {self.path}; {when}",
                hint=f"does anything write it? {VARIABLE} names it",
            ) from error
        except OSError as error:
            raise _unreadable(self.path, error) from error

    def of_boot(self, mark: ConsoleMark, word: str) -> ConsoleNews:
        """What one boot after the mark said, its end if it is long; later boots are left out.

        Where no kernel tells its command line (`quiet`) it is the end of all, and a note says so.

        Args:
            word: On that boot's kernel command line, and on no other's.

        Raises:
            ConsoleUnreadable: The log is not there, or cannot be read.
        """
        news = self.since(mark, most_bytes=SEARCHED_BYTES)
        lines = news.text.splitlines()
        start = next((at for at, line in enumerate(lines) if _gives(line, word)), None)
        if start is None:
            note = f"no kernel said that it was given {word}: this may be another boot" if lines else ""
            return ConsoleNews(_end(lines), "; ".join(filter(None, (news.note, note))))
        ends = (at for at, line in enumerate(lines) if at > start and _NEXT_BOOT.search(line))
        return ConsoleNews(_end(lines[start : next(ends, len(lines))]))

    def _since(self, mark: ConsoleMark, most_bytes: int) -> ConsoleNews:
        with _open(self.path) as file:
            if mark.inode == 0 or _holds(file, mark):
                return _told(_tail(file, mark.offset, most_bytes))
            size = os.fstat(file.fileno()).st_size
            data, left_out = _tail(file, 0, most_bytes)
        earlier = self._rotated(mark)
        if earlier is None:
            note = "the log was emptied or replaced after the mark; what it said before that is not here"
            return _told((data, left_out), note)
        with earlier:
            before, more_left_out = _tail(earlier, mark.offset, max(0, most_bytes - size))
        return _told((before + data, left_out + more_left_out))

    def _rotated(self, mark: ConsoleMark) -> BinaryIO | None:
        """The file the mark is in, when it was renamed in its folder, as log rotation does."""
        for path in sorted(self.path.parent.iterdir()):
            if path == self.path or not path.name.startswith(self.path.name):
                continue
            try:
                file = _open(path)
            except OSError:
                continue
            if _holds(file, mark):
                return file
            file.close()
        return None


def read_console_log(
    host: str, variables: Mapping[str, Any]
) -> tuple[ConsoleLog | None, tuple[Problem, ...]]:
    """The console log of a host; None when the inventory names none, or when there are problems."""
    if VARIABLE not in variables:
        return None, ()
    path, problems = absolute_path(variables[VARIABLE], host, f"{host}.{VARIABLE}")
    return (None if path is None else ConsoleLog(path)), problems


def readable(data: bytes) -> str:
    """Console bytes as lines of text that are safe to print: a node's console can say anything."""
    text = data.decode("utf-8", "replace")
    text = _ESCAPES.sub("", _PLACED.sub("\n", text))
    text = _UNPRINTABLE.sub("", _BREAKS.sub("\n", text))
    return _BLANK_LINES.sub("\n\n", text).strip("\n")


def _open(path: Path) -> BinaryIO:
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a file")
    return os.fdopen(descriptor, "rb")


def _holds(file: BinaryIO, mark: ConsoleMark) -> bool:
    about = os.fstat(file.fileno())
    if (about.st_dev, about.st_ino) != (mark.device, mark.inode) or about.st_size < mark.offset:
        return False
    return _fingerprint(file, mark.offset) == mark.fingerprint


def _fingerprint(file: BinaryIO, offset: int) -> str:
    start = max(0, offset - _FINGERPRINT_BYTES)
    file.seek(start)
    return hashlib.sha256(file.read(offset - start)).hexdigest()


def _tail(file: BinaryIO, offset: int, most_bytes: int) -> tuple[bytes, int]:
    """The end of what lies after an offset, and how many bytes before it are left out."""
    size = os.fstat(file.fileno()).st_size
    start = max(offset, size - most_bytes)
    file.seek(start)
    return file.read(most_bytes), start - offset


def _told(tail: tuple[bytes, int], note: str = "") -> ConsoleNews:
    data, left_out = tail
    if left_out:
        # The first line is a part of one, and may begin inside an escape sequence.
        _, found, rest = data.partition(b"\n")
        data = rest if found else data
        note = "; ".join(filter(None, (note, f"{left_out} bytes before this are left out")))
    return ConsoleNews(readable(data), note)


def _gives(line: str, word: str) -> bool:
    """Whether a kernel says here what its command line is, and the word is on it."""
    return "ommand line: " in line and word in line.split()


def _end(lines: list[str]) -> str:
    """As many of the last lines as a report has room for."""
    text = "\n".join(lines).rstrip()
    if len(text) <= MOST_BYTES:
        return text
    return text[-MOST_BYTES:].partition("\n")[2]


def _unreadable(path: Path, error: OSError) -> ConsoleUnreadable:
    return ConsoleUnreadable(f"cannot read the console log {path}: {error.strerror}")
