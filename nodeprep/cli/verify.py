"""`nodeprep verify`: effect checks only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich.markup import escape

from nodeprep.cli import _command
from nodeprep.cli._output import Output
from nodeprep.errors import ExitCode, worst
from nodeprep.model.outputs import VerificationList
from nodeprep.model.result import CheckResult, Effect, Scalar, Status, Verdict, Verification
from nodeprep.workflows.session import Request
from nodeprep.workflows.verify import verify as run_verify

EXIT_OF_VERDICT: dict[Verdict, ExitCode] = {
    "certified": ExitCode.OK,
    "rejected": ExitCode.REJECTED,
    "inconclusive": ExitCode.INCONCLUSIVE,
}
_EXIT_OF_EFFECT: dict[Effect, ExitCode] = {
    "in_effect": ExitCode.OK,
    "not_in_effect": ExitCode.REJECTED,
    "inconclusive": ExitCode.INCONCLUSIVE,
}
_STYLE = {"PASS": "green", "FAIL": "bold red", "ERROR": "magenta", "SKIPPED": "dim"}
_MAX_VALUE = 48
_ORDER: dict[Status, int] = {"FAIL": 0, "ERROR": 1, "SKIPPED": 2, "PASS": 3}


@_command.over_hosts
def verify(
    asked: Request,
    out: Output,
) -> ExitCode:
    """Check that what the policy asks for is in effect, without loading the node."""
    with _command.session(asked, "verify", out) as session:
        found = run_verify(session)
        run = session.run_document()
    code = worst(
        [*(_EXIT_OF_EFFECT[each.outcome] for each in found.values()), *map(_command.exit_of, run.hosts)]
    )
    if len(run.hosts) == 1:
        out.document(next(iter(found.values())) if found else _command.lost_document(run, code))
    else:
        out.document(VerificationList(run=run, hosts=found))
    if len(found) > 1 and not out.verbose:
        show_summary(
            [(_name(each), each.outcome.replace("_", " "), _worst_reasons(each)) for each in found.values()],
            out,
        )
    else:
        for each in found.values():
            title = f"{_name(each)}: {each.outcome.replace('_', ' ')}"
            show_checks(title, each.checks, out, everything=out.verbose)
    _command.explain_lost(run, out)
    return code


def show_checks(title: str, checks: Sequence[CheckResult], out: Output, *, everything: bool) -> None:
    """Checks as a table, the worst first; what passed only when asked for."""
    counts = Counter(check.status for check in checks)
    summary = ", ".join(f"{counts[status]} {status}" for status in _ORDER if counts[status])
    out.show(f"[bold]{escape(title)}[/] ({summary})")
    shown = sorted(
        (check for check in checks if everything or check.status in ("FAIL", "ERROR")),
        key=lambda check: _ORDER[check.status],
    )
    if not shown:
        return
    table = _command.table(("", "check", "on", "measured", "limit", "why"))
    for group in _alike(shown):
        check = group[0]
        table.add_row(
            f"[{_STYLE[check.status]}]{check.status}[/]",
            _few([each.id for each in group]),
            _few([each.subject for each in group]),
            _value(check.measured, check.unit),
            _value(check.limit, check.unit),
            escape(check.reason),
        )
    out.show(table)


def show_summary(rows: Sequence[tuple[str, str, Sequence[str]]], out: Output) -> None:
    """Many hosts in one line each: host, verdict, why."""
    table = _command.table(("host", "verdict", "why"))
    for host, verdict, reasons in rows:
        more = f" (and {len(reasons) - 1} more)" if len(reasons) > 1 else ""
        table.add_row(host, verdict, escape(reasons[0] + more) if reasons else "")
    out.show(table)


def _alike(checks: Sequence[CheckResult]) -> list[list[CheckResult]]:
    """Results that say the same of several checks or subjects, together.

    A probe that did not run leaves fifteen checks with one reason; that is one line.
    """
    groups: dict[tuple[object, ...], list[CheckResult]] = {}
    for check in checks:
        key = (check.status, check.reason, check.measured, check.limit, check.unit)
        groups.setdefault(key, []).append(check)
    return list(groups.values())


def _value(value: Scalar | None, unit: str) -> str:
    """A measured value or limit; a whole command line is told by the reason, not by its column."""
    text = "" if value is None else f"{value} {unit}".strip()
    return escape(text if len(text) <= _MAX_VALUE else text[: _MAX_VALUE - 3] + "...")


def _few(names: Sequence[str]) -> str:
    distinct = list(dict.fromkeys(names))
    return ", ".join(distinct) if len(distinct) <= 3 else f"{distinct[0]} and {len(distinct) - 1} more"


def _name(verification: Verification) -> str:
    return verification.host + (" (simulated)" if verification.simulated else "")


def _worst_reasons(verification: Verification) -> list[str]:
    bad = [check for check in verification.checks if check.status in ("FAIL", "ERROR")]
    bad.sort(key=lambda check: _ORDER[check.status])
    return [f"{check.id} {check.subject}: {check.reason}" for check in bad]
