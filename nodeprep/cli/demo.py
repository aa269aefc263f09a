"""`nodeprep demo`: the whole path on a simulated rack."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from nodeprep.cli import _command, _options
from nodeprep.cli._output import Output
from nodeprep.errors import ExitCode
from nodeprep.workflows.demo import demo as run_demo


def demo(
    nodes: Annotated[int, typer.Option("--nodes", help="How many simulated nodes.", min=1, max=64)] = 8,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to make anew.")] = Path("demo"),
    json: _options.Json = False,
    quiet: _options.Quiet = False,
    verbose: _options.Verbose = False,
) -> ExitCode:
    """Harden and certify a simulated rack with known faults; fails unless each is told right."""
    out = Output(json=json, quiet=quiet, verbose=verbose)
    with _command.interrupts(), out.progress(nodes) as shown:
        result = run_demo(output, nodes=nodes, notify=shown)
    out.document(result)
    out.show("[bold]SIMULATED rack: no real hardware was tested[/]")
    table = _command.table(("node", "fault", "verdict", "told", "why"))
    for story in result.stories:
        told = "[green]right[/]" if story.told_right else "[bold red]WRONG[/]"
        table.add_row(story.host, story.fault, story.verdict, told, escape(story.detail))
    out.show(table)
    out.show(f"report: {result.report}")
    out.say(f"{result.duration_s:.0f} s")
    if not result.all_told_right:
        out.error("a story was told wrong: see the table", "this is a bug in nodeprep")
        return ExitCode.BUG
    return ExitCode.OK
