"""Talking to the user: stdout is data, stderr is talk."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from rich.console import Console, RenderableType
from rich.markup import escape
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

from nodeprep.fleet import FleetEvent
from nodeprep.model.codec import encode_pretty


@dataclass(slots=True)
class Output:
    """One command's way to speak.

    Attributes:
        json: Print one document on stdout and nothing else.
        quiet: No talk but errors.
        verbose: Talk about every step, and show tracebacks.
    """

    json: bool = False
    quiet: bool = False
    verbose: bool = False
    talk: Console = field(default_factory=lambda: _console(stderr=True))
    data: Console = field(default_factory=lambda: _console(stderr=False))

    def document(self, document: object) -> None:
        """The command's document, when --json asked for it."""
        if self.json:
            raw = document if isinstance(document, bytes) else encode_pretty(document)
            sys.stdout.write(raw.decode())
            sys.stdout.flush()

    def show(self, renderable: RenderableType) -> None:
        """The command's answer for people."""
        if not self.json:
            self.data.print(renderable)

    def say(self, message: str, *, style: str = "") -> None:
        """A remark on stderr."""
        if not self.quiet:
            self.talk.print(escape(message), style=style)

    def error(self, message: str, hint: str = "") -> None:
        """What went wrong, and what to do about it; shown even with --quiet."""
        self.talk.print(f"[bold red]error:[/] {escape(message)}")
        if hint:
            self.talk.print(f"[bold]hint:[/] {escape(hint)}")

    @contextmanager
    def progress(self, hosts: int, *, live: bool = True) -> Iterator[ProgressView]:
        """Shows fleet events while the block runs: live on a terminal, plain lines elsewhere."""
        if self.quiet or not live or not self.talk.is_terminal:
            yield ProgressView(self, None)
            return
        columns = (
            SpinnerColumn(finished_text=" "),
            TextColumn("{task.fields[host]}", style="bold"),
            BarColumn(bar_width=20),
            TextColumn("{task.description}"),
            TimeElapsedColumn(),
        )
        # More hosts than lines on the screen would make rich repaint for ever; plain lines then.
        if hosts > self.talk.size.height - 4:
            yield ProgressView(self, None)
            return
        with Progress(*columns, console=self.talk, transient=True) as bars:
            yield ProgressView(self, bars)


def _console(*, stderr: bool) -> Console:
    # Emoji codes off: rich would turn the ":cd:" of a PCI address into a disc.
    made = Console(stderr=stderr, highlight=False, emoji=False, soft_wrap=stderr)
    if not made.is_terminal:
        # A pipe or a file has no width; a log line that is cut in two cannot be searched for.
        made.width = 1000
    return made


class ProgressView:
    """Turns fleet events into one line a host, or into plain lines."""

    def __init__(self, output: Output, bars: Progress | None) -> None:
        self._output = output
        self._bars = bars
        self._tasks: dict[str, TaskID] = {}
        self._last: dict[str, str] = {}

    def __call__(self, event: FleetEvent) -> None:
        """Takes one event; never raises, so that showing progress cannot end a run."""
        if self._bars is None:
            self._plain(event)
            return
        task = self._tasks.get(event.host)
        if task is None:
            task = self._bars.add_task("", total=None, host=event.host)
            self._tasks[event.host] = task
        percent = event.data.get("percent") if event.data else None
        description = escape(event.message)[:100]
        if isinstance(percent, int | float):
            self._bars.update(task, description=description, total=100, completed=percent)
        else:
            self._bars.update(task, description=description)

    def _plain(self, event: FleetEvent) -> None:
        # What failed is told at the end, with its hint.
        if event.kind != "progress" and not self._output.verbose:
            return
        if self._last.get(event.host) != event.message:
            self._last[event.host] = event.message
            self._output.say(f"{event.host}: {event.message}")
