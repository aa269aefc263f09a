"""`nodeprep apply`: plan, write, and see that it took effect."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

import typer
from rich.markup import escape

from nodeprep.cli import _command
from nodeprep.cli._bios import done_lines
from nodeprep.cli._output import Output
from nodeprep.cli.plan import exit_of_plan, show
from nodeprep.errors import ExitCode, UsageError, worst
from nodeprep.model.outputs import Application, ApplicationList
from nodeprep.model.plan import Plan
from nodeprep.model.trial import TrialReport
from nodeprep.workflows.apply import KERNEL_ARGS, Budget
from nodeprep.workflows.apply import apply as run_apply
from nodeprep.workflows.outside import NO_BMC_WARNING, Outside, without_bmc
from nodeprep.workflows.plan import plan as run_plan
from nodeprep.workflows.session import Request, Session

# The end of a console is where a boot stopped; the whole of it is in the run folder's documents.
_EVIDENCE_LINES = 12


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
    no_reboot: Annotated[
        bool,
        typer.Option(
            "--no-reboot",
            help="Reboot nothing; the next boot tries new kernel arguments once, and takes BIOS settings.",
        ),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before writing.")] = False,
) -> ExitCode:
    """Bring nodes to what the policy wants, and look again whether it took effect."""
    if not yes and (out.json or not sys.stdin.isatty()):
        raise UsageError("apply asks before it writes, and nobody is there to answer", hint="add --yes")
    budget = Budget(batch=batch, max_failed=max_failed)
    budget.check()
    with _command.session(asked, "apply", out, live=yes) as session:
        # Faults of the BMC access are told before anything else takes time.
        _, faults = Outside.of_sound(session.targets)
        if len(faults) == len(session.targets):
            Outside.of(session.targets)
        for fault in faults.values():
            out.error(fault.message, fault.hint)
        plans = run_plan(session)
        due = [plan for plan in plans.values() if plan.with_status("change")]
        for plan in due:
            show(plan, out)
        _warn(session, due, out)
        if due and not yes and not typer.confirm(f"change {len(due)} host(s)?", err=True):
            out.say("nothing was changed")
            return ExitCode.DRIFT
        done = run_apply(session, plans, budget, reboot=not no_reboot)
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


def _warn(session: Session, due: Sequence[Plan], out: Output) -> None:
    """Before anything is written: which of the nodes that will reboot have nobody to reset them."""
    trial = [plan.host for plan in due if any(c.knob == KERNEL_ARGS for c in plan.with_status("change"))]
    alone = without_bmc(session, trial)
    if alone:
        out.say(f"warning: {', '.join(alone)}: {NO_BMC_WARNING}", style="yellow")


def _lost(record: object) -> ExitCode:
    code = _command.exit_of(record)  # type: ignore[arg-type]
    return ExitCode.APPLY_FAILED if code is ExitCode.INCONCLUSIVE else code


def _show(application: Application, out: Output) -> None:
    plan = application.after or application.before
    left = [change for change in plan.changes if change.status not in ("ok", "change")]
    words = f"{_in_effect(application)} setting(s) written and read back"
    if application.state == "armed":
        words = "waits for the next boot"
        if application.bios:
            words += ", which brings the staged BIOS settings into effect"
        if application.trial is not None:
            words += (
                ", which tries the new kernel arguments. Apply again after it to make them permanent, and "
                "soon: a trial boot that nobody confirms (policy: trial.confirm_s) resets the node"
            )
    out.show(f"{escape(application.host)}: {application.state}, {words}")
    for note in application.notes:
        out.show(f"  note: {escape(note)}")
    for line in done_lines(application.bios):
        out.show(f"  {escape(line)}")
    for change in left:
        reason = escape(change.reason or change.why)
        out.show(f"  {change.status}: {change.knob} on {change.subject}: {reason}")
    if application.trial is not None:
        _show_trial(application.trial, out)
    if application.error:
        out.error(f"{application.host}: {application.error}", application.hint)


def _in_effect(application: Application) -> int:
    """How many of the changes that were due have been read back as wanted."""
    if application.after is None:
        return 0
    now = {(c.knob, c.subject, c.new) for c in application.after.with_status("ok")}
    return sum((c.knob, c.subject, c.new) in now for c in application.before.with_status("change"))


def _show_trial(trial: TrialReport, out: Output) -> None:
    if trial.state == "refused":
        return
    took = "" if trial.reboot_s is None else f", {trial.reboot_s:.0f} s from reboot to ssh"
    by = {"itself": "by itself", "controller": "by a second reboot", "bmc": "through its BMC"}
    back = f" {by[trial.recovered_by]}" if trial.recovered_by else ""
    out.show(f"  trial boot: {trial.state.replace('_', ' ')}{back}{took}")
    if trial.state == "permanent":
        return
    for finding in trial.findings:
        out.show(escape(f"    {finding.what}: {finding.before}, now {finding.now}"))
    for piece in trial.evidence:
        if piece.state == "not_configured":
            continue
        lines = piece.text.splitlines()[-_EVIDENCE_LINES:]
        out.show(f"    {piece.source}{'' if piece.state == 'ok' else ' (could not be read)'}:")
        for line in lines:
            out.show(escape(f"      {line}"))
