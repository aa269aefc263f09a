"""`nodeprep rollback`: back to how the node was before nodeprep first changed it."""

from __future__ import annotations

import sys
from typing import Annotated

import typer
from rich.markup import escape

from nodeprep.cli import _command
from nodeprep.cli._bios import done_lines
from nodeprep.cli._output import Output
from nodeprep.errors import ExitCode, UsageError, worst
from nodeprep.model.outputs import Rollback, RollbackList
from nodeprep.workflows.rollback import rollback as run_rollback
from nodeprep.workflows.session import Request


@_command.over_hosts
def rollback(
    asked: Request,
    out: Output,
    no_reboot: Annotated[
        bool,
        typer.Option("--no-reboot", help="Leave old kernel arguments and BIOS settings to the next boot."),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before writing.")] = False,
) -> ExitCode:
    """Take back what nodeprep has changed, as far as the nodes' restore points reach."""
    if not yes and (out.json or not sys.stdin.isatty()):
        raise UsageError("rollback asks before it writes, and nobody is there to answer", hint="add --yes")
    with _command.session(asked, "rollback", out, live=yes) as session:
        reboots = "" if no_reboot else ", with a reboot where kernel arguments or BIOS settings change"
        if not yes and not typer.confirm(f"roll {len(session.hosts)} host(s) back{reboots}?", err=True):
            out.say("nothing was changed")
            return ExitCode.OK
        done = run_rollback(session, reboot=not no_reboot)
        run = session.run_document()
    code = worst([*map(_exit_of, done.values()), *map(_command.exit_of, run.hosts)])
    if len(run.hosts) == 1:
        out.document(next(iter(done.values())) if done else _command.lost_document(run, code))
    else:
        out.document(RollbackList(run=run, hosts=done))
    for one in done.values():
        _show(one, out)
    _command.explain_lost(run, out, having=[host for host, one in done.items() if one.error])
    return code


def _exit_of(rolled: Rollback) -> ExitCode:
    if rolled.state == "failed":
        return ExitCode.APPLY_FAILED
    return ExitCode.DRIFT if rolled.state == "reboot_needed" else ExitCode.OK


def _show(rolled: Rollback, out: Output) -> None:
    words = {
        "nothing": "nodeprep has changed nothing here that could be taken back",
        "restored": f"as before nodeprep: {', '.join(rolled.restored)}",
        "reboot_needed": "written; what needs a reboot comes into effect with the next one",
        "failed": "not rolled back",
    }[rolled.state]
    out.show(f"{escape(rolled.host)}: {words}")
    if rolled.cmdline_after and rolled.cmdline_after != rolled.cmdline_before:
        out.show(f"  kernel command line was: {escape(rolled.cmdline_before)}")
        out.show(f"  kernel command line is:  {escape(rolled.cmdline_after)}")
    for line in done_lines(rolled.bios):
        out.show(f"  {escape(line)}")
    for note in rolled.notes:
        out.show(f"  note: {escape(note)}")
    if rolled.error:
        out.error(f"{rolled.host}: {rolled.error}", rolled.hint)
