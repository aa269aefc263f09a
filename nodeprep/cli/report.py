"""`nodeprep report`: a run again, in another format."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nodeprep.cli import _options
from nodeprep.cli._output import Output
from nodeprep.errors import ExitCode
from nodeprep.model.outputs import ReportWritten
from nodeprep.reports import write_report
from nodeprep.workflows.home import Home
from nodeprep.workflows.runs import find_run, load_view


def report(
    run: Annotated[str | None, typer.Argument(help="Run id or folder; the newest by default.")] = None,
    format_: Annotated[str, typer.Option("--format", help="html or json.")] = "html",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder to write to; the run's own by default.")
    ] = None,
    json: _options.Json = False,
    quiet: _options.Quiet = False,
    verbose: _options.Verbose = False,
) -> ExitCode:
    """Write the report of a run."""
    out = Output(json=json, quiet=quiet, verbose=verbose)
    folder = find_run(Home.from_environment(), run)
    view = load_view(folder)
    file = write_report(view, format_, output or folder)
    out.document(ReportWritten(run=view.run.id, format=format_, file=str(file)))
    out.show(str(file))
    return ExitCode.OK
