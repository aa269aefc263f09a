"""`nodeprep cert`: read a certificate, check it, compare it with the node as it is now."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from nodeprep.certify import waivers
from nodeprep.cli import _command, _options
from nodeprep.cli._output import Output
from nodeprep.cli.verify import show_checks
from nodeprep.errors import ExitCode, UsageError
from nodeprep.fleet.inventory import LOCALHOST
from nodeprep.model.certificate import Certificate
from nodeprep.model.outputs import Drift
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

    Exit 0 as certified, 10 drifted, 20 the certificate is rejected or expired, 21 it is inconclusive
    or something could not be compared.
    """
    out = Output(json=json, quiet=quiet, verbose=verbose)
    signed = workflow.signed_certificate(certificate, key, Home.from_environment())
    if inventory is None and signed.certificate.host != LOCALHOST:
        raise UsageError(
            f"the certificate is of {signed.certificate.host}, not of this machine",
            hint="name the inventory with -i",
        )
    asked = _command.request(
        signed.certificate.host if inventory is not None else None,
        inventory,
        policy,
        output,
        become=become,
        ask_become_pass=ask_become_pass,
        forks=1,
    )
    with _command.session(asked, "drift", out) as session:
        compared = workflow.compare(session, signed)
    out.document(compared.drift)
    _show_drift(compared.drift, signed.certificate.issued, out)
    if not compared.drift.valid:
        out.error(f"{certificate}: {compared.drift.message}", signed.looked.hint)
    return compared.exit_code


def _show_drift(drift: Drift, issued: str, out: Output) -> None:
    name = f"[bold]{escape(drift.host)}[/]" + (" (simulated)" if drift.simulated else "")
    if drift.valid:
        out.show(f"{name}: {'not ' if drift.differences else ''}as certified on {issued}")
    else:
        standing = drift.problem.replace("_", " ")
        changed = "changed" if drift.differences else "nothing it could read has changed"
        out.show(f"{name}: not certified ({standing}); {changed} since {issued}")
    if not drift.differences:
        return
    table = _command.table(("", "what", "certified" if drift.valid else "then", "now"))
    for difference in drift.differences:
        table.add_row(
            difference.kind, escape(difference.key), escape(difference.certified), escape(difference.now)
        )
    out.show(table)


def _show(certificate: Certificate, key_id: str, out: Output, *, everything: bool) -> None:
    mark = " [bold](SIMULATED: no real hardware)[/]" if certificate.simulated else ""
    out.show(f"[bold]{escape(certificate.host)}[/]: {certificate.verdict}{mark}")
    for reason in certificate.reasons:
        out.show(f"  {escape(reason)}")
    facts = {
        "issued": certificate.issued,
        "expires": certificate.expires,
        "level": f"{certificate.level}, profile {certificate.profile}",
        "workload": _workload(certificate),
        "machine": f"{certificate.identity.product} {certificate.identity.product_serial}",
        "run": certificate.run,
        "signed by": key_id,
    }
    for name, value in facts.items():
        out.show(f"  {name}: {escape(value)}")
    for waiver in waivers.described(certificate.checks):
        out.show(f"  waived: {escape(waiver)}")
    for gpu in certificate.identity.gpus:
        out.show(f"  GPU {gpu.pci_address}: {escape(gpu.name)}, serial {gpu.serial}, {gpu.uuid}")
    show_checks("checks", certificate.checks, out, everything=everything)


def _workload(certificate: Certificate) -> str:
    """A file can call itself by a shipped workload's name; its digest tells them apart."""
    ran = certificate.digests.get("workload", "")
    return f"{certificate.workload}, {f'sha256 {ran}' if ran else 'not run'}"
