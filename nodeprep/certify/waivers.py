"""What somebody answers for: which results a waiver covers, and how long a certificate may rest on it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, time, timedelta
from fnmatch import fnmatchcase

from nodeprep.model.policy import Waiver
from nodeprep.model.result import CheckResult
from nodeprep.model.spec import NodeSpec


def waived(result: CheckResult, spec: NodeSpec) -> CheckResult:
    """The result, SKIPPED when a waiver that has not expired covers it."""
    for waiver in spec.waivers:
        if _covers(waiver, result, spec.host):
            return replace(result, status="SKIPPED", waiver=waiver, waived_status=result.status)
    return result


def lapsed(spec: NodeSpec, checks: Sequence[CheckResult]) -> Iterator[str]:
    """A line for each expired waiver that would have mattered."""
    for waiver in spec.expired_waivers:
        if any(_covers(waiver, result, spec.host) for result in checks):
            yield f"{waiver.check}: the waiver by {waiver.owner} ended on {waiver.until} and was not applied"


def used(checks: Sequence[CheckResult]) -> tuple[Waiver, ...]:
    """The waivers that results stand on, each once."""
    return tuple(dict.fromkeys(result.waiver for result in checks if result.waiver is not None))


def described(checks: Sequence[CheckResult]) -> tuple[str, ...]:
    """A line for each used waiver: what it covers, who answers for it, until when and why."""
    lines: list[str] = []
    for waiver in used(checks):
        covered = [result for result in checks if result.waiver == waiver]
        statuses = "/".join(sorted({result.waived_status or "" for result in covered}))
        on = ", ".join(dict.fromkeys(result.subject for result in covered))
        lines.append(f"{waiver.check} {statuses} on {on}: {waiver.owner} until {waiver.until}: {waiver.why}")
    return tuple(lines)


def summary(checks: Sequence[CheckResult]) -> str:
    """How many waivers, and by whom; empty when there are none."""
    waivers = used(checks)
    if not waivers:
        return ""
    owners = ", ".join(sorted({waiver.owner for waiver in waivers}))
    return f"{len(waivers)} waiver{'s' if len(waivers) > 1 else ''} by {owners}"


def expiry(issued: datetime, valid_days: int, checks: Sequence[CheckResult]) -> datetime:
    """When a certificate ends: after its days, or with the last day (UTC) of a waiver it stands on."""
    ends = (datetime.combine(waiver.until, time(23, 59, 59), tzinfo=UTC) for waiver in used(checks))
    return min([issued + timedelta(days=valid_days), *ends])


def _covers(waiver: Waiver, result: CheckResult, host: str) -> bool:
    return (
        result.status in ("FAIL", "ERROR")
        and waiver.check == result.id
        and waiver.status in (None, result.status)
        and fnmatchcase(host, waiver.host)
        and fnmatchcase(result.subject, waiver.subject)
    )
