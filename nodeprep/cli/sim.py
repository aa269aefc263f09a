"""`nodeprep sim`: simulated parts, for trying things out without a GPU."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nodeprep.cli import _options
from nodeprep.cli._output import Output
from nodeprep.errors import ExitCode
from nodeprep.model.outputs import Created
from nodeprep.sim.rack import build_rack

app = typer.Typer(
    help="Simulated parts. Whatever touches them says so in every document.", no_args_is_help=True
)


@app.callback()
def main() -> None:
    """Keep `rack` a subcommand although it is the only one."""


@app.command()
def rack(
    folder: Annotated[Path, typer.Argument(help="Folder to build the rack in.")],
    nodes: Annotated[int, typer.Option("--nodes", help="How many nodes.", min=1, max=64)] = 8,
    json: _options.Json = False,
    quiet: _options.Quiet = False,
    verbose: _options.Verbose = False,
) -> ExitCode:
    """Build a rack of simulated GPU nodes and an inventory for it."""
    out = Output(json=json, quiet=quiet, verbose=verbose)
    built = build_rack(folder, nodes=nodes)
    next_command = f"nodeprep certify -i {built.inventory}"
    out.document(Created(folder=str(folder), files=(str(built.inventory),), next=next_command))
    out.show(str(built.inventory))
    out.say(f"next: {next_command}")
    return ExitCode.OK
