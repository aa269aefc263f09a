"""`nodeprep diagnose`: from logs, or from live nodes, to what went wrong and what to do."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from nodeprep.cli import _command, _options
from nodeprep.cli._output import Output
from nodeprep.cli._reading import reading_bar
from nodeprep.diagnose.explain import explain as explain_code
from nodeprep.diagnose.story import explained, story
from nodeprep.errors import ExitCode, UsageError, worst
from nodeprep.model.diagnosis import Diagnosis
from nodeprep.model.outputs import DiagnosisList
from nodeprep.workflows.diagnose import diagnose_files, diagnose_hosts
from nodeprep.workflows.diagnose_cursor import path_of, require_cursors
from nodeprep.workflows.session import Request

Paths = Annotated[
    list[str] | None,
    typer.Argument(
        help="Logs and saved outputs of tools of one node: files, folders, archives, compressed or not; "
        "- is standard input."
    ),
]
Explain = Annotated[
    str | None,
    typer.Option(
        "--explain", metavar="CODE", help="Say what is known of an Xid (79) or of another code, and end."
    ),
]
Host = Annotated[
    str | None,
    typer.Option("--host", metavar="HOSTS", help="Ansible host pattern: read live nodes in place of files."),
]
Since = Annotated[
    Path | None,
    typer.Option(
        "--since",
        metavar="RUN",
        help="Run folder of an earlier diagnose --host: of logs, only what came after it. Counters are told "
        "as they are now.",
    ),
]


def diagnose(
    paths: Paths = None,
    host: Host = None,
    since: Since = None,
    explain: Explain = None,
    inventory: _options.Inventory = None,
    output: _options.OutputFolder = None,
    become: _options.Become = False,
    ask_become_pass: _options.AskBecomePass = False,
    forks: _options.Forks = 25,
    json: _options.Json = False,
    quiet: _options.Quiet = False,
    verbose: _options.Verbose = False,
) -> ExitCode:
    """Find out what went wrong: root cause, layer, device and next action, with the lines that say so.

    Exit code 20 when an incident is above info, 21 when none is but something could not be read.
    """
    out = Output(json=json, quiet=quiet, verbose=verbose)
    _refuse_mixture(paths, host, explain, [inventory, output, since])
    if explain is not None:
        known = explain_code(explain)
        out.document(known)
        out.show(explained(known))
        return ExitCode.OK
    if host is not None:
        asked = _command.request(
            host, inventory, None, output, become=become, ask_become_pass=ask_become_pass, forks=forks
        )
        return _live(asked, since, out)
    with _command.interrupts(), reading_bar(out) as progress:
        found = diagnose_files(paths or [], progress=progress)
    out.document(found)
    out.show(story(found))
    return exit_of(found)


def exit_of(found: Diagnosis) -> ExitCode:
    """20 for incidents above info, 21 when there are none but input is missing, else 0."""
    if any(incident.severity != "info" for incident in found.incidents):
        return ExitCode.REJECTED
    return ExitCode.OK if found.healthy else ExitCode.INCONCLUSIVE


def _live(asked: Request, since: Path | None, out: Output) -> ExitCode:
    if since is not None:
        # Before there is a run folder: what is refused leaves none behind.
        require_cursors(since)
    with _command.session(asked, "diagnose", out) as session:
        found = diagnose_hosts(session, since=since)
        run = session.run_document()
    for name in [host for host in found if since is not None and not (since / path_of(host)).is_file()]:
        out.say(f"{name} is not in {since}: its logs were read from the beginning")
    code = worst([*map(exit_of, found.values()), *map(_command.exit_of, run.hosts)])
    if len(run.hosts) == 1:
        out.document(next(iter(found.values())) if found else _command.lost_document(run, code))
    else:
        out.document(DiagnosisList(run=run, hosts=found))
    for name, each in found.items():
        mark = " (simulated)" if each.simulated else ""
        out.show(f"[bold]{escape(name)}[/]{mark}")
        out.show(story(each))
    _command.explain_lost(run, out)
    return code


def _refuse_mixture(
    paths: list[str] | None,
    host: str | None,
    explain: str | None,
    of_hosts: list[Path | None],
) -> None:
    given = [bool(paths), host is not None, explain is not None]
    if sum(given) > 1:
        raise UsageError("give one of paths, --host and --explain", hint="see nodeprep diagnose --help")
    if not any(given):
        raise UsageError(
            "nothing to diagnose", hint="name log files or folders, - for standard input, or --host HOSTS"
        )
    if host is None and any(option is not None for option in of_hosts):
        raise UsageError(
            "-i, -o and --since belong to live nodes", hint="add --host HOSTS, or leave them out"
        )
