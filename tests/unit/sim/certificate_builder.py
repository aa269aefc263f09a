"""Certificates in few words, for tests of what is said in them."""

from __future__ import annotations

from nodeprep.model.certificate import Certificate, Configuration, Identity
from nodeprep.model.result import CheckResult, Verdict

IDENTITY = Identity(
    product="p",
    product_serial="s",
    product_uuid="u",
    board="b",
    board_serial="bs",
    bios_version="1",
    bmc="",
    cpu_model="c",
    cpu_count=1,
    memory_bytes=1,
    gpus=(),
)


def result(status: str, check: str, subject: str = "node", reason: str = "because") -> CheckResult:
    return CheckResult(id=check, subject=subject, status=status, reason=reason)  # type: ignore[arg-type]


def certificate(
    verdict: Verdict, *results: CheckResult, simulated: bool = True, reasons: tuple[str, ...] = ()
) -> Certificate:
    return Certificate(
        host="node01",
        run="r",
        verdict=verdict,
        reasons=reasons,
        level="quick",
        workload="tiny",
        simulated=simulated,
        issued="2026-01-01T00:00:00Z",
        expires="2026-04-01T00:00:00Z",
        nodeprep_version="0",
        profile="h100",
        identity=IDENTITY,
        configuration=Configuration(values={}),
        checks=results,
        probe=None,
        digests={},
    )
