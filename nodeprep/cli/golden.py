"""`nodeprep golden`: the bits that this site holds to be right."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from nodeprep.cli import _options
from nodeprep.cli._output import Output
from nodeprep.errors import ExitCode
from nodeprep.workflows import golden as workflow
from nodeprep.workflows.home import Home

app = typer.Typer(help="Golden digests: show, learn, forget.", no_args_is_help=True)

_STANDING = {
    "vouched": "an operator vouched for it",
    "confirmed": "confirmed by several nodes",
    "first_seen": "seen on one node only: nothing is held against it yet",
    "disputed": "nodes gave different bits, and no answer leads",
    "unknown": "not seen on any node",
}
Why = Annotated[str, typer.Option("--why", help="What this rests on; kept with it.")]


@app.command()
def show(
    json: _options.Json = False, quiet: _options.Quiet = False, verbose: _options.Verbose = False
) -> ExitCode:
    """Show which bits are known, by GPU model, build and workload."""
    out = Output(json=json, quiet=quiet, verbose=verbose)
    found = workflow.listed(Home.from_environment())
    out.document(found)
    if found.trouble:
        # "Nothing is known" would be a statement about the site; this is one about the file.
        out.error(
            f"cannot be read: {found.trouble}", "nodes are compared with no golden digests until it can be"
        )
        return ExitCode.INCONCLUSIVE
    if found.damaged_lines:
        out.say(f"{found.damaged_lines} damaged lines of {found.file} were left out")
    if not found.entries:
        out.show("nothing is known yet: certified runs on real GPUs teach it")
    for entry in found.entries:
        out.show(f"[bold]{entry.key}[/] {escape(entry.model)}, {entry.workload}, {escape(entry.build)}")
        why = f": {escape(entry.vouched_why)}" if entry.vouched_why else ""
        out.show(f"  {_STANDING[entry.standing]}{why}; {entry.gpus} GPUs seen")
        if verbose or entry.standing == "disputed":
            for answer in entry.answers:
                out.show(f"  {answer.digest}: {escape(', '.join(answer.nodes))}")
    return ExitCode.OK


@app.command()
def learn(
    result: Annotated[Path, typer.Argument(metavar="RESULT", help="A probe's result.json.", exists=True)],
    why: Why,
    json: _options.Json = False,
    quiet: _options.Quiet = False,
    verbose: _options.Verbose = False,
) -> ExitCode:
    """Vouch for the bits of a probe result: from now on other bits are a FAIL."""
    out = Output(json=json, quiet=quiet, verbose=verbose)
    home = Home.from_environment()
    for one in workflow.vouch(home, result, why=why):
        out.say(f"learned: {one.model}, {one.workload}, {one.build}")
    out.document(workflow.listed(home))
    return ExitCode.OK


@app.command()
def forget(
    key: Annotated[
        str, typer.Argument(metavar="KEY", help="As `golden show` lists it; its beginning is enough.")
    ],
    why: Why,
    json: _options.Json = False,
    quiet: _options.Quiet = False,
    verbose: _options.Verbose = False,
) -> ExitCode:
    """Let what was learned so far for one GPU model, build and workload no longer count."""
    out = Output(json=json, quiet=quiet, verbose=verbose)
    home = Home.from_environment()
    one = workflow.forget(home, key, why=why)
    out.say(f"forgotten: {one.model}, {one.workload}, {one.build}")
    out.document(workflow.listed(home))
    return ExitCode.OK
