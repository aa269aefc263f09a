"""Reading formats of one message a line: time handed on, boots told apart, losses noticed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache

from nodeprep.diagnose.line import Line
from nodeprep.diagnose.reader import Item, Parsed, RawLine, Reader, Remark
from nodeprep.diagnose.readers import _losses
from nodeprep.diagnose.readers._kernel import BANNER
from nodeprep.diagnose.readers._text import clean, quote
from nodeprep.registry import discover

BACKWARDS_S = 1.0
"""Uptimes of two CPUs may cross by less than this; more is another boot."""
BOOT_START_S = 1.0
"""The banner is printed at 0.000000; a kernel log that begins later than this has lost it."""

Build = Callable[[re.Match[str]], Parsed | None]


def log_reader(
    name: str,
    pattern: str,
    build: Build,
    *,
    whole: bool = False,
    wants: tuple[bytes, ...] = (),
    bonus: int = 0,
    many_hosts: bool = False,
) -> Reader:
    """A reader of a format in which each message is a line that matches a pattern.

    Args:
        pattern: Of the whole line; its beginning must be telling enough to find such lines in
            other texts.
        build: Makes the message of a match; None when it is of another format after all.
        bonus: Added to the sureness of a format whose lines are all lines of a more general one.
        many_hosts: Lines of several hosts stand among each other, each with boots of its own.
    """
    compiled = re.compile(pattern, re.DOTALL)
    opens = re.compile(pattern.encode(), re.DOTALL)

    def parse(text: str) -> Parsed | None:
        match = compiled.match(text)
        return build(match) if match else None

    return Reader(
        id=name,
        sniff=sniff_by(opens, bonus),
        read=read_by(parse, many_hosts=many_hosts),
        wants=(*_losses.NEEDLES, *wants),
        whole=whole,
        opens=opens,
        parse=parse,
    )


def sniff_by(opens: re.Pattern[bytes], bonus: int = 0) -> Callable[[Sequence[bytes]], int]:
    """Sureness by the share of lines that match; one is enough to be in the running."""

    def sniff(lines: Sequence[bytes]) -> int:
        written = [line for line in lines if line.strip()]
        hits = sum(1 for line in written if opens.match(line))
        return 20 + 70 * hits // len(written) + bonus if hits else 0

    return sniff


def read_by(
    parse: Callable[[str], Parsed | None], *, many_hosts: bool = False
) -> Callable[[str, Iterator[RawLine]], Iterator[Item]]:
    """The `read` of a format from what parses one of its lines."""

    def read(source: str, lines: Iterator[RawLine]) -> Iterator[Item]:
        state = _State(source)
        states: dict[str, _State] = {}
        for raw in lines:
            text = clean(raw.data)
            if not text:
                continue
            parsed = parse(text) or parse_any(text)
            if many_hosts and parsed is not None and parsed.host:
                state = states.setdefault(parsed.host, _State(source, f"/{parsed.host}"))
            yield from state.take(raw.number, text, parsed)
        for each in states.values() or (state,):
            yield from each.end()

    return read


def parse_any(text: str) -> Parsed | None:
    """A line of whatever format: other programs write into the same file."""
    for parse in _parsers():
        parsed = parse(text)
        if parsed is not None:
            return parsed
    return None


@cache
def _parsers() -> tuple[Callable[[str], Parsed | None], ...]:
    readers = discover("nodeprep.diagnose.readers", "READER")
    return tuple(reader.parse for reader in readers.values() if reader.parse is not None)


@dataclass(slots=True)
class _State:
    """What one line of a log says about the next."""

    source: str
    of_host: str = ""
    boots: int = 0
    time: datetime | None = None
    uptime_s: float | None = None
    host: str = ""
    kernel: bool | None = None
    said_kernel: bool = False
    seen_start: bool = False
    first_uptime_s: float | None = None
    notes: set[str] = field(default_factory=set)

    def take(self, number: int, raw: str, parsed: Parsed | None) -> Iterator[Item]:
        """Items of one line."""
        loss = _losses.found(raw)
        if loss is not None:
            if loss.new_boot and self.said_kernel:
                self._next_boot()
            yield Remark(gap=loss.gap, note=loss.note)
        if parsed is None:
            # A continuation, or a line of nobody: it was written right after the one before it.
            yield self._line(number, raw, raw)
            return
        if parsed.note and parsed.note not in self.notes:
            self.notes.add(parsed.note)
            yield Remark(note=parsed.note)
        yield from self._look_at_boot(parsed)
        self.time = parsed.time
        self.uptime_s = parsed.uptime_s
        self.host = parsed.host or self.host
        self.kernel = parsed.kernel
        yield self._line(number, raw, parsed.text)

    def _look_at_boot(self, parsed: Parsed) -> Iterator[Item]:
        if not parsed.kernel and parsed.uptime_s is None:
            return
        banner = BANNER.match(parsed.text) is not None
        backwards = (
            parsed.uptime_s is not None
            and self.uptime_s is not None
            and parsed.uptime_s < self.uptime_s - BACKWARDS_S
        )
        if self.said_kernel and (banner or backwards) and not (banner and self._just_began(parsed)):
            self._next_boot()
            yield Remark(note="it holds more than one boot")
        if banner:
            self.seen_start = True
        if not self.said_kernel:
            self.said_kernel = True
            self.first_uptime_s = parsed.uptime_s

    def _just_began(self, parsed: Parsed) -> bool:
        """Some firmware and early-console lines come before the banner."""
        if parsed.uptime_s is None or self.uptime_s is None:
            return False
        return self.uptime_s <= BOOT_START_S and parsed.uptime_s >= self.uptime_s

    def _next_boot(self) -> None:
        self.boots += 1
        self.uptime_s = None
        self.seen_start = False
        self.first_uptime_s = None
        self.said_kernel = False

    def end(self) -> Iterator[Item]:
        """What the log as a whole lacks."""
        if not self.said_kernel or self.seen_start:
            return
        if self.first_uptime_s is None:
            yield Remark(gap=NO_START)
        elif self.first_uptime_s > BOOT_START_S:
            yield Remark(gap=f"{NO_START}: it begins {self.first_uptime_s:.0f} s after it")

    def _line(self, number: int, raw: str, text: str) -> Line:
        return Line(
            source=self.source,
            number=number,
            text=text,
            raw=quote(raw),
            time=self.time,
            uptime_s=self.uptime_s,
            host=self.host,
            boot=f"{self.source}/{self.boots}{self.of_host}",
            kernel=self.kernel,
        )


NO_START = "the kernel's first messages after the boot are missing"
