"""`nodeprep sim`: simulated parts, for trying things out without a GPU."""

from __future__ import annotations

import os
import secrets
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from nodeprep.bmc.password import ENVIRONMENT, read_password
from nodeprep.cli import _options
from nodeprep.cli._output import Output
from nodeprep.errors import ExitCode, UsageError
from nodeprep.model.codec import encode
from nodeprep.model.outputs import Created, ReadyBmcs
from nodeprep.sim.bmc import program
from nodeprep.sim.bmc.faults import FAULTS
from nodeprep.sim.rack import build_rack

app = typer.Typer(
    help="Simulated parts. Whatever touches them says so in every document.", no_args_is_help=True
)


@app.command()
def rack(
    folder: Annotated[Path, typer.Argument(help="Folder to build the rack in.")],
    nodes: Annotated[int, typer.Option("--nodes", help="How many nodes.", min=1, max=64)] = 8,
    json: _options.Json = False,
    quiet: _options.Quiet = False,
    verbose: _options.Verbose = False,
) -> ExitCode:
    """Build a rack of simulated GPU nodes and an inventory for it."""
    out = Output(json=json, quiet=quiet, verbose=verbose)
    built = build_rack(folder, nodes=nodes)
    next_command = f"nodeprep certify -i {built.inventory}"
    out.document(Created(folder=str(folder), files=(str(built.inventory),), next=next_command))
    out.show(str(built.inventory))
    out.say(f"next: {next_command}")
    return ExitCode.OK


@app.command(epilog=f"Faults: {', '.join(FAULTS)}. --list-faults says what each does.")
def bmc(
    dump: Annotated[
        list[Path] | None,
        typer.Option("--dump", help="JSON file {uri: body} of a real BMC; several are served in turn."),
    ] = None,
    port: Annotated[
        int, typer.Option("--port", help="Port on 127.0.0.1; 0 takes a free one.", min=0, max=65535)
    ] = 0,
    fault: Annotated[
        list[str] | None, typer.Option("--fault", help="A deviation, by name; may be repeated.")
    ] = None,
    list_faults: Annotated[bool, typer.Option("--list-faults", help="Show the faults and end.")] = False,
    count: Annotated[
        int, typer.Option("--count", help="How many BMCs, on ports from --port on.", min=1, max=10000)
    ] = 1,
    user: Annotated[str, typer.Option("--user", help="User of the BMC.")] = "admin",
    password_file: Annotated[
        Path | None,
        typer.Option(
            "--bmc-password-file",
            help=f"File with its password. Without it and without {ENVIRONMENT} one is made up and shown.",
        ),
    ] = None,
    tls_folder: Annotated[
        Path | None,
        typer.Option("--tls-folder", help="Folder of CA and certificate, made there when it has none."),
    ] = None,
    plain_http: Annotated[bool, typer.Option("--plain-http", help="No TLS; for measurements only.")] = False,
    post_seconds: Annotated[
        float, typer.Option("--post-seconds", help="How long a host stays in POST.", min=0.0)
    ] = 2.0,
    json: _options.Json = False,
    quiet: _options.Quiet = False,
    verbose: _options.Verbose = False,
) -> ExitCode:
    """Serve simulated BMCs over Redfish until Ctrl-C. The first line on stdout says where, as JSON."""
    out = Output(json=json, quiet=quiet, verbose=verbose)
    if list_faults:
        _show_faults(out)
        return ExitCode.OK
    if not dump:
        raise UsageError("no dump is given", hint="nodeprep sim bmc --dump FILE")
    asked = program.Asked(
        dumps=dump,
        count=max(count, len(dump)),
        port=port,
        user=user,
        password=_password(password_file, out),
        faults=fault or (),
        tls_folder=tls_folder,
        plain=plain_http,
        post_s=post_seconds,
    )

    def ready(document: ReadyBmcs) -> None:
        out.document(document)
        if not json:
            sys.stdout.write(encode(document).decode() + "\n")
            sys.stdout.flush()

    program.run(asked, ready)
    return ExitCode.INTERRUPTED


def _password(path: Path | None, out: Output) -> str:
    if path is not None or os.environ.get(ENVIRONMENT):
        return read_password(path, os.environ)
    made = secrets.token_urlsafe(12)
    # Shown even with --quiet: nobody could log in otherwise.
    out.talk.print(f"password: {made}", markup=False)
    return made


def _show_faults(out: Output) -> None:
    faults = {fault.id: fault.title for fault in FAULTS.values()}
    out.document({"faults": faults, "schema": "nodeprep.sim_bmc_faults/1"})
    width = max(map(len, faults))
    for name, title in faults.items():
        out.show(Text(f"{name:<{width}}  {title}"))
