"""`nodeprep init`: writes an example site."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nodeprep.cli import _options
from nodeprep.cli._output import Output
from nodeprep.errors import ExitCode
from nodeprep.workflows.init import write_site


def init(
    folder: Annotated[Path, typer.Argument(help="Folder to write into.")] = Path(),
    json: _options.Json = False,
    quiet: _options.Quiet = False,
    verbose: _options.Verbose = False,
) -> ExitCode:
    """Write an example site: an inventory, and group_vars with a commented policy."""
    out = Output(json=json, quiet=quiet, verbose=verbose)
    created = write_site(folder)
    out.document(created)
    for file in created.files:
        out.show(file)
    out.say(f"next: {created.next}")
    return ExitCode.OK
