"""What a correct tool must conclude about a node, and whether a certificate says just that.

A right verdict for a wrong reason is a wrong answer: a node rejected for a missing GPU when its
NVML hung would be sent back to the vendor for nothing. So a conclusion names the reasons, and
`disagreements` accepts no other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal

from nodeprep.model.certificate import Certificate
from nodeprep.model.result import CheckResult, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """One reason a certificate must give.

    Attributes:
        status: FAIL, or ERROR for what could not be read.
        check: Check id, or a shell pattern of ids.
        subject: The PCI address or "node" the result must speak of, or a shell pattern.
        says: Words that the reason must contain, in any case of letters.
        required: False for a consequence that may or may not be noticed as well.
    """

    status: Literal["FAIL", "ERROR"]
    check: str
    subject: str = "*"
    says: tuple[str, ...] = ()
    required: bool = True

    def explains(self, result: CheckResult) -> bool:
        """True when this result is what the cause predicts."""
        reason = result.reason.casefold()
        return (
            result.status == self.status
            and fnmatchcase(result.id, self.check)
            and fnmatchcase(result.subject, self.subject)
            and all(word.casefold() in reason for word in self.says)
        )

    def __str__(self) -> str:
        words = f" saying {', '.join(map(repr, self.says))}" if self.says else ""
        return f"{self.status} of {self.check} on {self.subject}{words}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Conclusion:
    """A verdict and all the reasons there may be for it.

    Attributes:
        gaps: Words of which one must be in any further reason that comes from no check (the node
            was not loaded, its GPUs cannot be named); none are allowed when there are no words.
    """

    verdict: Verdict
    causes: tuple[Cause, ...] = ()
    gaps: tuple[str, ...] = ()


HEALTHY = Conclusion(verdict="certified")


def disagreements(conclusion: Conclusion, certificate: Certificate) -> tuple[str, ...]:
    """How a certificate of a simulated node differs from what it should say; empty when it does not."""
    bad = [result for result in certificate.checks if result.status in ("FAIL", "ERROR")]
    found: list[str] = []
    if not certificate.simulated:
        found.append("the certificate does not say that the node is simulated")
    if not certificate.checks:
        found.append("the certificate holds no check results")
    if certificate.verdict != conclusion.verdict:
        found.append(f"verdict is {certificate.verdict}, must be {conclusion.verdict}")
    found.extend(
        f"missing reason: {cause}"
        for cause in conclusion.causes
        if cause.required and not any(cause.explains(result) for result in bad)
    )
    found.extend(
        f"unexpected {result.status} of {result.id} on {result.subject}: {result.reason}"
        for result in bad
        if not any(cause.explains(result) for cause in conclusion.causes)
    )
    found.extend(f"unexpected reason: {reason}" for reason in _other_reasons(conclusion, certificate, bad))
    return tuple(found)


def _other_reasons(conclusion: Conclusion, certificate: Certificate, bad: list[CheckResult]) -> Iterator[str]:
    """Reasons of the verdict that no check gave and the conclusion does not foresee."""
    for reason in certificate.reasons:
        from_a_check = any(reason.endswith(result.reason) for result in bad)
        foreseen = any(word.casefold() in reason.casefold() for word in conclusion.gaps)
        if not from_a_check and not foreseen:
            yield reason
