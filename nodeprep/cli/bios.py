"""`nodeprep bios`: the BIOS of machines through their BMCs; one needs no inventory, many are named in one."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, TypeVar

import typer
from rich.markup import escape

from nodeprep.bmc.bios import parse_settings
from nodeprep.bmc.redfish.connection import Connection
from nodeprep.cli import _command, _options
from nodeprep.cli._bmc import Access, of_a_bmc
from nodeprep.cli._output import Output
from nodeprep.cli.bios_sensors import sensors
from nodeprep.errors import ExitCode, NodeprepError, UsageError, worst
from nodeprep.fleet import FleetEvent
from nodeprep.fleet.inventory import read_targets
from nodeprep.model.bios import BiosApplication, BiosKnobPlan, BiosPlan, BiosState
from nodeprep.model.bios_lists import BiosPlanList, BiosStateList
from nodeprep.model.outputs import ErrorDocument
from nodeprep.workflows import bios as workflow
from nodeprep.workflows import bios_apply, bios_work
from nodeprep.workflows.bios_many import Ask, ask_all
from nodeprep.workflows.home import Home

T = TypeVar("T", BiosPlan, BiosState)
app = typer.Typer(help="BIOS settings through the BMC (Redfish).", no_args_is_help=True)
app.command()(sensors)

BIOS_PASSWORD = "NODEPREP_BIOS_PASSWORD"  # noqa: S105 - the name of a variable
Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KNOB=VALUE[,slot=N]", help="A knob and its value; may be repeated."),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before writing.")]
NoReset = Annotated[bool, typer.Option("--no-reset", help="Stage only: in effect after the next reset.")]
Deadline = Annotated[
    float,
    typer.Option("--deadline-s", help="Seconds for each reset, until the values are in effect.", min=1.0),
]
Graceful = Annotated[
    float,
    typer.Option(
        "--graceful-s", help="Seconds for the operating system to shut down, before force.", min=0.0
    ),
]
_TEXT = {"ok": "", "change": "yellow", "unsupported": "magenta", "refused": "red", "ambiguous": "red"}
_NOT_SET = ("unsupported", "refused", "ambiguous")


@app.command()
@of_a_bmc
def show(
    access: Access, out: Output, hosts: _options.Hosts = None, inventory: _options.Inventory = None
) -> ExitCode:
    """Show the knobs and every attribute. Changes nothing."""
    if _is_one(access, hosts, inventory):
        target = access.target()
        with _command.interrupts():
            state = workflow.show(target, _telling(out))
        out.document(state)
        _show_state(state, out)
        return ExitCode.OK
    found, errors = _of_many(hosts, inventory, out, workflow.show)
    if not _only_one(found, errors, out):
        out.document(BiosStateList(hosts=found, errors=errors))
    for host, state in found.items():
        out.show(f"[bold]{escape(host)}[/]")
        _show_state(state, out)
    return _worst(errors, [])


@app.command()
@of_a_bmc
def plan(
    access: Access,
    out: Output,
    hosts: _options.Hosts = None,
    setting: Set = None,
    inventory: _options.Inventory = None,
) -> ExitCode:
    """Show what would change, and what cannot and why. Exit 10 unless all is as wanted."""
    wanted, home = parse_settings(_some(setting)), Home.from_environment()
    if _is_one(access, hosts, inventory):
        target = access.target()
        with _command.interrupts():
            planned = workflow.plan(target, wanted, _telling(out), home)
        out.document(planned)
        _show_plan(planned, out)
        return _of_plan(planned)
    found, errors = _of_many(
        hosts, inventory, out, lambda bmc, connect: workflow.plan(bmc, wanted, connect, home)
    )
    if not _only_one(found, errors, out):
        out.document(BiosPlanList(hosts=found, errors=errors))
    for host, planned in found.items():
        out.show(f"[bold]{escape(host)}[/]")
        _show_plan(planned, out)
    return _worst(errors, [_of_plan(planned) for planned in found.values()])


@app.command()
@of_a_bmc
def apply(
    access: Access,
    out: Output,
    setting: Set = None,
    yes: Yes = False,
    no_reset: NoReset = False,
    deadline_s: Deadline = 1800.0,
    graceful_s: Graceful = 180.0,
) -> ExitCode:
    """Stage the changes, restart the host, wait through POST, and read back what is in effect."""
    wanted = parse_settings(_some(setting))
    target = access.target()
    _may_ask(yes, out, "apply")

    def confirm(planned: BiosPlan) -> bool:
        if yes:
            return True
        _show_plan(planned, out)
        restart = "stage" if no_reset else "write and RESTART THE HOST"
        return typer.confirm(f"{restart}?", err=True)

    asked = bios_work.Asked(
        target,
        reset=not no_reset,
        deadline_s=deadline_s,
        graceful_s=graceful_s,
        bios_password=os.environ.get(BIOS_PASSWORD, ""),
    )
    with _command.interrupts():
        done = bios_apply.apply(
            asked,
            wanted,
            Home.from_environment(),
            confirm=confirm,
            notify=out.say,
            connect=_telling(out),
        )
    return _ended(done, out)


@app.command()
@of_a_bmc
def rollback(
    access: Access,
    out: Output,
    restore: Annotated[
        Path | None,
        typer.Option("--restore", help="Restore point; by default the last one of this BMC.", dir_okay=False),
    ] = None,
    yes: Yes = False,
    no_reset: NoReset = False,
    deadline_s: Deadline = 1800.0,
    graceful_s: Graceful = 180.0,
) -> ExitCode:
    """Take back what apply changed: the values of the restore point, staged, applied and read back."""
    target = access.target()
    _may_ask(yes, out, "rollback")

    def confirm(values: dict[str, object]) -> bool:
        if yes:
            return True
        for name, value in values.items():
            out.show(f"{escape(name)}: back to {escape(str(value))}")
        restart = "stage" if no_reset else "write and RESTART THE HOST"
        return typer.confirm(f"{restart}?", err=True)

    asked = bios_work.Asked(
        target,
        reset=not no_reset,
        deadline_s=deadline_s,
        graceful_s=graceful_s,
        bios_password=os.environ.get(BIOS_PASSWORD, ""),
    )
    with _command.interrupts():
        done = bios_apply.rollback(
            asked,
            Home.from_environment(),
            restore=restore,
            confirm=confirm,
            notify=out.say,
            connect=_telling(out),
        )
    return _ended(done, out)


def _telling(out: Output) -> workflow.Connect:
    """Conversations that tell the user when a BMC lets them wait."""
    return lambda target: Connection(target, notify=out.say)


def _is_one(access: Access, hosts: str | None, inventory: Path | None) -> bool:
    """Whether one BMC is named, and no hosts."""
    many = hosts is not None or inventory is not None
    if access.url and many:
        raise UsageError(
            "--bmc names one machine, and HOSTS others", hint="--bmc URL, or HOSTS with -i INVENTORY"
        )
    if not access.url and not many:
        raise UsageError("no machine is named", hint="--bmc URL, or HOSTS with -i INVENTORY")
    return not many


def _of_many(
    hosts: str | None, inventory: Path | None, out: Output, ask: Ask[T]
) -> tuple[dict[str, T], dict[str, ErrorDocument]]:
    """The answers of the hosts' BMCs, and the errors of those that gave none; no host is left out."""
    targets = read_targets(inventory, hosts)
    lock, ended, failed = threading.Lock(), 0, 0
    with _command.interrupts(), out.progress(1) as progress:

        def done(host: str, error: NodeprepError | None) -> None:
            nonlocal ended, failed
            with lock:
                ended, failed = ended + 1, failed + (error is not None)
                words = f"{ended} of {len(targets)}" + (f", {failed} failed" if failed else "")
                percent = {"percent": 100 * ended / len(targets)}
                progress(FleetEvent("BMCs", "task", f"{words} ({host})", percent))

        answers = ask_all(targets, ask, done=done)
    found: dict[str, T] = {}
    errors: dict[str, ErrorDocument] = {}
    for host, answer in answers.items():
        if isinstance(answer, NodeprepError):
            errors[host] = ErrorDocument(exit_code=answer.exit_code, error=answer.message, hint=answer.hint)
            out.error(f"{host}: {answer.message}", answer.hint)
        else:
            found[host] = answer
    return found, errors


def _only_one(found: Mapping[str, object], errors: Mapping[str, ErrorDocument], out: Output) -> bool:
    """Whether one host was asked for, whose own document is then printed (docs/adr/0020)."""
    if len(found) + len(errors) != 1:
        return False
    out.document(next(iter((*found.values(), *errors.values()))))
    return True


def _of_plan(planned: BiosPlan) -> ExitCode:
    return ExitCode.OK if planned.in_desired_state else ExitCode.DRIFT


def _worst(errors: Mapping[str, ErrorDocument], codes: list[ExitCode]) -> ExitCode:
    return worst((*(ExitCode(error.exit_code) for error in errors.values()), *codes))


def _some(settings: list[str] | None) -> list[str]:
    if not settings:
        raise UsageError("no knob is set", hint="for example --set pcie_link_gen=4 --set iommu=disabled")
    return settings


def _may_ask(yes: bool, out: Output, verb: str) -> None:
    if not yes and (out.json or not sys.stdin.isatty()):
        raise UsageError(f"{verb} asks before it writes, and nobody is there to answer", hint="add --yes")


def _ended(done: BiosApplication, out: Output) -> ExitCode:
    out.document(done)
    out.show(f"[bold]{escape(_name(done))}[/]: {_headline(done)}")
    if done.outcomes:
        table = _command.table(("attribute", "knob", "before", "wanted", "now", "result", "detail"))
        for one in done.outcomes:
            row = (one.name, one.knob, one.before, one.wanted, one.after, one.result, one.detail)
            table.add_row(*(escape(str(cell)) for cell in row))
        out.show(table)
    for note in done.notes:
        out.show(f"note: {escape(note)}")
    for knob in done.before.knobs:
        if knob.status in _NOT_SET:
            out.show(f"{escape(knob.knob)}: {knob.status}: {escape(knob.reason)}")
    if done.restore_file:
        out.show(f"restore point: {escape(done.restore_file)}")
    if done.error:
        out.error(done.error, done.hint)
    return exit_of(done)


def _headline(done: BiosApplication) -> str:
    """How it ended; what could not be set is not passed over."""
    words = {
        "unchanged": "nothing was to do",
        "staged": "staged: in effect after the next reset of the host",
        "applied": "in effect, and read back",
        "partial": "some of it is in effect",
        "failed": "not applied",
    }[done.state]
    unset = [knob.knob for knob in done.before.knobs if knob.status in _NOT_SET]
    if done.state == "unchanged" and exit_of(done) is not ExitCode.OK:
        words = "nothing was written, and not all is as wanted"
    return f"{words}; cannot be set: {escape(', '.join(unset))}" if unset else words


def exit_of(done: BiosApplication) -> ExitCode:
    """The exit code of an application."""
    if done.state in ("failed", "partial"):
        return ExitCode.APPLY_FAILED
    if done.state == "staged":
        return ExitCode.DRIFT
    if done.undone:
        return ExitCode.OK
    if done.after is None:
        return ExitCode.INCONCLUSIVE
    return ExitCode.OK if done.after.in_desired_state else ExitCode.DRIFT


def _name(document: BiosState | BiosPlan | BiosApplication) -> str:
    who = document.bmc
    mark = " (simulated)" if document.simulated else ""
    firmware = f"BIOS {who.bios or '?'}, BMC {who.bmc_firmware or '?'}"
    return f"{who.vendor} {who.model or 'unknown machine'}, {firmware}{mark}"


def _show_state(state: BiosState, out: Output) -> None:
    out.show(f"[bold]{escape(_name(state))}[/], registry {state.registry}")
    table = _command.table(("knob", "is", "attributes"))
    for knob in state.knobs:
        names = ", ".join(f"{one.name}={one.current}" for one in knob.settings[:4])
        more = f" and {len(knob.settings) - 4} more" if len(knob.settings) > 4 else ""
        table.add_row(knob.knob, knob.value or "-", escape(f"{names}{more}" or knob.reason))
    out.show(table)
    staged = [one for one in state.attributes if one.pending is not None]
    for one in staged:
        out.show(f"staged: {escape(one.name)} {escape(str(one.current))} -> {escape(str(one.pending))}")
    _show_notes(state, out)


def _show_plan(planned: BiosPlan, out: Output) -> None:
    out.show(f"[bold]{escape(_name(planned))}[/], registry {planned.registry}")
    for knob in planned.knobs:
        _show_knob(knob, out)
    for reason in planned.blocked_by:
        out.show(f"[red]blocked:[/] {escape(reason)}")
    if planned.needs_reset:
        out.show("in effect only after a reset of the host")
    _show_notes(planned, out)


def _show_knob(knob: BiosKnobPlan, out: Output) -> None:
    style = _TEXT[knob.status]
    status = f"[{style}]{knob.status}[/]" if style else knob.status
    out.show(f"{escape(knob.knob)}={escape(knob.wanted)}: {status}: {escape(knob.reason)}")
    for one in knob.attributes:
        staged = "" if one.pending is None else f" (staged: {one.pending})"
        scope = "" if one.scope == "global" else f" [{one.scope}]"
        text = f"{one.name}{scope}: {one.current}{staged}"
        if one.current != one.value or one.pending not in (None, one.value):
            text += f" -> {one.value}"
        out.show(f"  {escape(text)}")
    for candidate in knob.candidates:
        told = f"{candidate.name}: {candidate.display_name} ({candidate.menu_path})"
        out.show(f"  could be {escape(told)}")
    for risk in knob.risks:
        out.show(f"  risk: {escape(risk)}")


def _show_notes(document: BiosState | BiosPlan, out: Output) -> None:
    for note in document.notes:
        out.show(f"note: {escape(note)}")
    if "insecure" in document.tls:
        out.show(f"[yellow]note:[/] {escape(document.tls)}")
