"""A bar that shows how far the reading of long inputs is."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.markup import escape
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from nodeprep.cli._output import Output

_SHOW_AFTER_S = 1.0
"""What is read sooner needs no bar."""


@contextmanager
def reading_bar(out: Output) -> Iterator[Callable[[str, int, int | None], None] | None]:
    """What to tell of each input: its name, bytes read, bytes in all; None when nobody is looking."""
    if out.quiet or not out.talk.is_terminal:
        yield None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    begun = time.monotonic()
    with Progress(*columns, console=out.talk, transient=True) as bars:
        task = bars.add_task("", visible=False)

        def told(name: str, done_bytes: int, all_bytes: int | None) -> None:
            visible = time.monotonic() - begun > _SHOW_AFTER_S
            bars.update(
                task, description=escape(name), completed=done_bytes, total=all_bytes, visible=visible
            )

        yield told
