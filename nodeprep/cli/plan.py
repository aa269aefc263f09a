"""`nodeprep plan`: desired against actual; exit 10 if anything differs (docs/adr/0040)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich.markup import escape

from nodeprep.cli import _command
from nodeprep.cli._bios import attribute_lines
from nodeprep.cli._output import Output
from nodeprep.errors import ExitCode, worst
from nodeprep.model.outputs import PlanList
from nodeprep.model.plan import Change, Plan
from nodeprep.workflows.plan import access_faults
from nodeprep.workflows.plan import plan as run_plan
from nodeprep.workflows.session import Request

_STYLE = {"ok": "dim", "change": "yellow", "refused": "red", "unsupported": "magenta", "unknown": "red"}


@_command.over_hosts
def plan(
    asked: Request,
    out: Output,
) -> ExitCode:
    """Show what would change, with old, new, why and risks; exit 10 if anything differs."""
    with _command.session(asked, "plan", out) as session:
        plans = run_plan(session)
        run = session.run_document()
        faults = access_faults(session)
    code = worst(
        [
            *map(_exit_of, plans.values()),
            *map(_command.exit_of, run.hosts),
            *([ExitCode.USAGE] if faults else []),
        ]
    )
    if len(run.hosts) == 1:
        out.document(next(iter(plans.values())) if plans else _command.lost_document(run, code))
    else:
        out.document(PlanList(run=run, hosts=plans))
    for each in plans.values():
        show(each, out, everything=out.verbose)
    _command.explain_lost(run, out)
    if faults:
        hint = "apply does not start like this: a BMC is the way back from a boot that hangs"
        out.error(faults.message, hint)
    return code


def _exit_of(plan: Plan) -> ExitCode:
    """Something that differs differs, whatever else cannot be read."""
    return ExitCode.DRIFT if plan.with_status("change", "refused", "unsupported") else exit_of_plan(plan)


def exit_of_plan(plan: Plan) -> ExitCode:
    """What a node that should be as wanted by now has come to: unreadable is worse than different."""
    if plan.with_status("unknown"):
        return ExitCode.INCONCLUSIVE
    return ExitCode.OK if plan.in_desired_state else ExitCode.DRIFT


def show(plan: Plan, out: Output, *, everything: bool = False) -> None:
    """The plan as a table; what is already so only when asked for."""
    mark = " (simulated)" if plan.simulated else ""
    shown = [change for change in plan.changes if everything or change.status != "ok"]
    if not shown:
        out.show(f"{escape(plan.host)}{mark}: nothing to change ({len(plan.changes)} settings as wanted)")
        return
    out.show(f"[bold]{escape(plan.host)}[/]{mark}: profile {plan.profile}")
    table = _command.table(("", "knob", "on", "now", "wanted", "why"))
    groups = _alike(shown)
    notes = _notes(groups)
    for group in groups:
        change = group[0]
        words = _words(change, notes)
        table.add_row(
            f"[{_STYLE[change.status]}]{change.status}[/]",
            change.knob,
            _command.subjects([each.subject for each in group], len(_gpus(plan))),
            escape(change.old),
            escape(change.new),
            escape(words),
        )
    out.show(table)
    for number, reason in enumerate(notes, start=1):
        out.show(f"  ({number}) {escape(reason)}")
    # A pin of links through the BIOS is written with its knob, and told there.
    for change in (change for change in shown if change.knob == "bios"):
        for line in attribute_lines(change.attributes):
            out.show(f"  {escape(change.new)}: {escape(line)}")
    risks = sorted({(c.knob, risk) for c in shown if c.status == "change" for risk in c.risks})
    for knob, risk in risks:
        out.show(f"  [yellow]risk[/] of {knob}: {escape(risk)}")
    if any(change.needs_reboot for change in shown):
        out.show("  a reboot is needed for some of these")


def _alike(changes: Sequence[Change]) -> list[list[Change]]:
    """Changes that differ in their subject only, together: eight GPUs with one story are one line."""
    groups: dict[tuple[str, ...], list[Change]] = {}
    for change in changes:
        key = (change.status, change.knob, change.old, change.new, change.why, change.reason)
        groups.setdefault(key, []).append(change)
    return list(groups.values())


def _words(change: Change, notes: Sequence[str]) -> str:
    """Why it is wanted; where that is out of reach, why it is."""
    if not change.reason:
        return change.why
    reason = f"see ({notes.index(change.reason) + 1})" if change.reason in notes else change.reason
    return f"{change.why}; {reason}" if change.status in ("ok", "change") else reason


def _notes(groups: Sequence[Sequence[Change]]) -> list[str]:
    """Reasons that several rows share, such as an NVML that hangs: they are told once, below the table."""
    counted = Counter(group[0].reason for group in groups if group[0].reason)
    return [reason for reason, times in counted.items() if times > 1]


def _gpus(plan: Plan) -> set[str]:
    return {change.subject for change in plan.changes if change.subject != "node"}
