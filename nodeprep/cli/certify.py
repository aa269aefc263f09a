"""`nodeprep certify`: inspect, verify, probe, judge; one certificate a node."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.markup import escape

from nodeprep.certify import waivers
from nodeprep.certify.judge import line_of
from nodeprep.cli import _command, _options
from nodeprep.cli._output import Output
from nodeprep.cli.verify import EXIT_OF_VERDICT, show_checks, show_summary
from nodeprep.errors import ExitCode, worst
from nodeprep.model.outputs import CertificateList
from nodeprep.workflows.asking import CertifyOptions
from nodeprep.workflows.certify import Certified
from nodeprep.workflows.certify import certify as run_certify
from nodeprep.workflows.session import Request


@_command.over_hosts
def certify(
    asked: Request,
    out: Output,
    level: Annotated[
        Literal["quick", "standard", "extended", "soak"] | None,
        typer.Option("--level", help="quick: a minute; standard: ten; extended: two hours; soak: days."),
    ] = None,
    workload: Annotated[
        str | None,
        typer.Option("--workload", help="A shipped workload (vit-g, vit-g-14, ...) or a YAML file."),
    ] = None,
    inject: Annotated[
        str,
        typer.Option(
            "--inject",
            help="Prove that the probe finds a fault, e.g. flip:block=7,bit=0. Such a run never certifies.",
        ),
    ] = "",
    soak_hours: Annotated[
        float, typer.Option("--soak-hours", min=0.0, max=720.0, help="Length of a soak; 0 is seven days.")
    ] = 0.0,
    key: _options.Key = None,
) -> ExitCode:
    """Load each node, judge it, and sign what was found."""
    with _command.session(asked, "certify", out) as session:
        options = CertifyOptions(
            level=level, workload=workload, inject=inject, soak_s=3600.0 * soak_hours, key=key
        )
        certified = run_certify(session, options)
        run, folder = session.run_document(), session.run_dir
    code = worst(
        [
            *(EXIT_OF_VERDICT[each.certificate.verdict] for each in certified.values()),
            *map(_command.exit_of, run.hosts),
        ]
    )
    if len(run.hosts) == 1:
        only = next(iter(certified.values()), None)
        out.document(_command.lost_document(run, code) if only is None else only.envelope)
    else:
        out.document(
            CertificateList(run=run, hosts={host: each.envelope for host, each in certified.items()})
        )
    if len(run.hosts) > 1 and not out.verbose:
        show_summary(
            [
                (_name(each), each.certificate.verdict, each.certificate.reasons)
                for each in certified.values()
            ],
            out,
        )
    else:
        for each in certified.values():
            _show(each, out, everything=out.verbose)
    _command.explain_lost(run, out, having=tuple(certified))
    for record in run.hosts:
        if record.host in certified and record.hint:
            out.say(f"hint: {record.host}: {record.hint}")
    out.say(f"report: {folder / 'report.html'}")
    return code


def _show(certified: Certified, out: Output, *, everything: bool) -> None:
    certificate = certified.certificate
    title = f"{_name(certified)}: {certificate.verdict}"
    show_checks(title, certificate.checks, out, everything=everything)
    of_checks = {line_of(check) for check in certificate.checks}
    for reason in certificate.reasons:
        if reason not in of_checks:
            out.show(f"  [bold]{escape(reason)}[/]")
    for waiver in waivers.described(certificate.checks):
        out.show(f"  waived: {escape(waiver)}")
    out.show(f"  {escape(str(_shorter(certified.file)))}")


def _name(certified: Certified) -> str:
    certificate = certified.certificate
    return certificate.host + (" (simulated)" if certificate.simulated else "")


def _shorter(path: Path) -> Path:
    try:
        return path.relative_to(Path.cwd())
    except ValueError:
        return path
