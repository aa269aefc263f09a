"""`nodeprep apply`: plan, write, and see that it took effect."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from nodeprep.cli import _command
from nodeprep.cli._output import Output
from nodeprep.cli.plan import exit_of_plan, show
from nodeprep.errors import ExitCode, UsageError, worst
from nodeprep.model.outputs import Application, ApplicationList
from nodeprep.workflows.apply import Budget
from nodeprep.workflows.apply import apply as run_apply
from nodeprep.workflows.plan import plan as run_plan
from nodeprep.workflows.session import Request


@_command.over_hosts
def apply(
    asked: Request,
    out: Output,
    batch: Annotated[
        str | None, typer.Option("--batch", help="Hosts at a time: a number or a percentage.")
    ] = None,
    max_failed: Annotated[
        str | None,
        typer.Option("--max-failed", help="Stop starting hosts after this many lost ones: number or %."),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before writing.")] = False,
) -> ExitCode:
    """Bring nodes to what the policy wants, and look again whether it took effect."""
    if not yes and (out.json or not sys.stdin.isatty()):
        raise UsageError("apply asks before it writes, and nobody is there to answer", hint="add --yes")
    budget = Budget(batch=batch, max_failed=max_failed)
    budget.check()
    with _command.session(asked, "apply", out, live=yes) as session:
        plans = run_plan(session)
        due = [plan for plan in plans.values() if plan.with_status("change")]
        for plan in due:
            show(plan, out)
        if due and not yes and not typer.confirm(f"change {len(due)} host(s)?", err=True):
            out.say("nothing was changed")
            return ExitCode.DRIFT
        done = run_apply(session, plans, budget)
        run = session.run_document()
    code = worst([*map(exit_of_application, done.values()), *map(_lost, run.hosts)])
    if len(run.hosts) == 1:
        out.document(next(iter(done.values())) if done else _command.lost_document(run, code))
    else:
        out.document(ApplicationList(run=run, hosts=done))
    for application in done.values():
        _show(application, out)
    told = [host for host, application in done.items() if application.error]
    _command.explain_lost(run, out, having=told)
    return code


def exit_of_application(application: Application) -> ExitCode:
    """Failed writes first; otherwise what still differs after it."""
    if application.state in ("failed", "skipped"):
        return ExitCode.APPLY_FAILED
    return exit_of_plan(application.after or application.before)


def _lost(record: object) -> ExitCode:
    code = _command.exit_of(record)  # type: ignore[arg-type]
    return ExitCode.APPLY_FAILED if code is ExitCode.INCONCLUSIVE else code


def _show(application: Application, out: Output) -> None:
    plan = application.after or application.before
    changed = len(application.before.with_status("change")) if application.state == "applied" else 0
    left = [change for change in plan.changes if change.status not in ("ok", "change")]
    out.show(f"{application.host}: {application.state}, {changed} setting(s) written and read back")
    for note in application.notes:
        out.show(f"  note: {note}")
    for change in left:
        out.show(f"  {change.status}: {change.knob} on {change.subject}: {change.reason or change.why}")
    if application.error:
        out.error(f"{application.host}: {application.error}", application.hint)
