"""Results and certificates for the tests of this folder."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from nodeprep.certify.certificate import build_certificate
from nodeprep.certify.judge import conclude
from nodeprep.checks import Context
from nodeprep.model.certificate import Certificate
from nodeprep.model.result import CheckResult

NOW = datetime(2026, 11, 30, 10, 5, tzinfo=UTC)


def changed(document: Any, changes: dict[str, Any]) -> Any:
    """A JSON document with some values replaced, by JSON pointer."""
    for pointer, value in changes.items():
        *path, last = pointer.lstrip("/").split("/")
        part = document
        for step in path:
            part = part[int(step)] if isinstance(part, list) else part[step]
        if isinstance(part, list):
            part[int(last)] = value
        else:
            assert last in part, pointer
            part[last] = value
    return document


def passed(check: str, subject: str = "node") -> CheckResult:
    return CheckResult(id=check, subject=subject, status="PASS", reason="as it should be")


def certificate_for(context: Context, results: tuple[CheckResult, ...], **more: Any) -> Certificate:
    judgement = conclude(context, results, expected=[result.id for result in results], under_load=True)
    certificate = build_certificate(
        run="20261130T100000Z-certify-ab12",
        spec=context.spec,
        judgement=judgement,
        before=context.before,
        after=context.after,
        probe=context.probe,
        level="quick",
        workload="vit-g",
        issued=NOW,
        expires=NOW + timedelta(days=90),
        digests={"policy": context.spec.policy_digest, "content": "c" * 64},
    )
    return replace(certificate, **more)
