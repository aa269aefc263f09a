"""`nodeprep cert`: read a certificate, check it, compare it with the node as it is now."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from nodeprep.cli import _command, _options
from nodeprep.cli._output import Output
from nodeprep.cli.verify import show_checks
from nodeprep.errors import ExitCode
from nodeprep.model.certificate import Certificate
from nodeprep.workflows import cert as workflow
from nodeprep.workflows.home import Home

app = typer.Typer(help="Read certificates back: show, verify, drift.", no_args_is_help=True)

CertificateFile = Annotated[Path, typer.Argument(metavar="CERT", help="A certificate file.")]
PublicKeyFile = Annotated[
    Path | None,
    typer.Option("--key", help="Public key (PEM) it must be signed with; this controller's own by default."),
]
AllowSimulated = Annotated[
    bool, typer.Option("--allow-simulated", help="Accept a certificate of a simulated node.")
]


@app.command()
def show(
    certificate: CertificateFile,
    json: _options.Json = False,
    quiet: _options.Quiet = False,
    verbose: _options.Verbose = False,
) -> ExitCode:
    """Show what a certificate says. Does not check its signature: that is `cert verify`."""
    out = Output(json=json, quiet=quiet, verbose=verbose)
    read, key_id = workflow.read_unchecked(certificate)
    out.document(read)
    _show(read, key_id, out, everything=verbose)
    out.say("signature not checked: nodeprep cert verify does that")
    return ExitCode.OK


@app.command()
def verify(
    certificate: CertificateFile,
    key: PublicKeyFile = None,
    allow_simulated: AllowSimulated = False,
    json: _options.Json = False,
    quiet: _options.Quiet = False,
    verbose: _options.Verbose = False,
) -> ExitCode:
    """Check signature, schema, expiry and verdict.

    Exit 0 accepted, 20 refused, 21 a good signature on a simulated or inconclusive certificate.
    """
    out = Output(json=json, quiet=quiet, verbose=verbose)
    looked = workflow.verify_file(certificate, key, Home.from_environment(), allow_simulated=allow_simulated)
    out.document(looked.check)
    if looked.check.accepted:
        mark = " (simulated)" if looked.check.simulated else ""
        out.show(
            f"{escape(looked.check.host)}{mark}: {escape(looked.check.message)}, until {looked.check.expires}"
        )
    else:
        out.error(f"{certificate}: {looked.check.message}", looked.hint)
    return looked.exit_code


@app.command()
def drift(
    certificate: CertificateFile,
    key: PublicKeyFile = None,
    inventory: _options.Inventory = None,
    policy: _options.PolicyFile = None,
    output: _options.OutputFolder = None,
    become: _options.Become = False,
    ask_become_pass: _options.AskBecomePass = False,
    json: _options.Json = False,
    quiet: _options.Quiet = False,
    verbose: _options.Verbose = False,
) -> ExitCode:
    """Compare a certificate with its node as it is now, and name exactly what changed.

    Exit 0 as certified, 10 drifted, 21 something could not be compared.
    """
    out = Output(json=json, quiet=quiet, verbose=verbose)
    certified = workflow.signed_certificate(certificate, key, Home.from_environment())
    asked = _command.request(
        certified.host if inventory is not None else None,
        inventory,
        policy,
        output,
        become=become,
        ask_become_pass=ask_become_pass,
        forks=1,
    )
    with _command.session(asked, "drift", out) as session:
        compared = workflow.compare(session, certified, file=certificate)
    out.document(compared.drift)
    if not compared.drift.differences:
        out.show(f"{escape(certified.host)}: as certified on {certified.issued}")
        return compared.exit_code
    out.show(f"[bold]{escape(certified.host)}[/]: not as certified on {certified.issued}")
    table = _command.table(("", "what", "certified", "now"))
    for difference in compared.drift.differences:
        table.add_row(difference.kind, difference.key, escape(difference.certified), escape(difference.now))
    out.show(table)
    return compared.exit_code


def _show(certificate: Certificate, key_id: str, out: Output, *, everything: bool) -> None:
    mark = " [bold](SIMULATED: no real hardware)[/]" if certificate.simulated else ""
    out.show(f"[bold]{escape(certificate.host)}[/]: {certificate.verdict}{mark}")
    for reason in certificate.reasons:
        out.show(f"  {escape(reason)}")
    facts = {
        "issued": certificate.issued,
        "expires": certificate.expires,
        "level": f"{certificate.level}, workload {certificate.workload}, profile {certificate.profile}",
        "machine": f"{certificate.identity.product} {certificate.identity.product_serial}",
        "run": certificate.run,
        "signed by": key_id,
    }
    for name, value in facts.items():
        out.show(f"  {name}: {escape(value)}")
    for gpu in certificate.identity.gpus:
        out.show(f"  GPU {gpu.pci_address}: {escape(gpu.name)}, serial {gpu.serial}, {gpu.uuid}")
    show_checks("checks", certificate.checks, out, everything=everything)
