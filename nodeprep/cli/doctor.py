"""`nodeprep doctor`: is this controller ready?"""

from __future__ import annotations

from nodeprep.cli import _command, _options
from nodeprep.cli._output import Output
from nodeprep.errors import ExitCode
from nodeprep.workflows.doctor import doctor as run_doctor
from nodeprep.workflows.home import Home

_STYLE = {"ok": "green", "warning": "yellow", "missing": "bold red"}


def doctor(
    json: _options.Json = False,
    quiet: _options.Quiet = False,
    verbose: _options.Verbose = False,
) -> ExitCode:
    """Check that this controller has what it needs: versions, keys, ssh, collection."""
    out = Output(json=json, quiet=quiet, verbose=verbose)
    found = run_doctor(Home.from_environment())
    out.document(found)
    table = _command.table(("", "what", "found", "hint"))
    for finding in found.findings:
        table.add_row(
            f"[{_STYLE[finding.status]}]{finding.status}[/]", finding.name, finding.detail, finding.hint
        )
    out.show(table)
    return ExitCode.OK if found.ready else ExitCode.USAGE
