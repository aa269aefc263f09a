"""`nodeprep diagnose`: from logs, or from live nodes, to what went wrong and what to do."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from nodeprep.cli import _command, _options
from nodeprep.cli._output import Output
from nodeprep.cli._reading import reading_bar
from nodeprep.errors import ExitCode, UsageError
from nodeprep.model.diagnosis import Diagnosis
from nodeprep.workflows.diagnose import diagnose_files

Paths = Annotated[
    list[str] | None,
    typer.Argument(
        help="Logs and saved outputs of tools: files, folders, .gz, .xz, .zst, .bz2; - is standard input."
    ),
]
Explain = Annotated[
    str | None,
    typer.Option("--explain", metavar="CODE", help="Say what is known of an Xid (79) or another code, and end."),
]


def diagnose(
    paths: Paths = None,
    explain: Explain = None,
    json: _options.Json = False,
    quiet: _options.Quiet = False,
    verbose: _options.Verbose = False,
) -> ExitCode:
    """Find what went wrong in logs and saved outputs of one node; name root cause, device, next action."""
    out = Output(json=json, quiet=quiet, verbose=verbose)
    if not paths:
        raise UsageError("nothing to diagnose", hint="name log files or folders, - for standard input, or --host")
    with _command.interrupts(), reading_bar(out) as progress:
        found = diagnose_files(paths, progress=progress)
    out.document(found)
    return exit_of(found)


def exit_of(found: Diagnosis) -> ExitCode:
    """20 for incidents above info, 21 when there are none but input is missing, else 0."""
    if any(incident.severity != "info" for incident in found.incidents):
        return ExitCode.REJECTED
    return ExitCode.OK if found.healthy else ExitCode.INCONCLUSIVE
