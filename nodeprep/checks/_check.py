"""What a check is, what it may look at, and how it is run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, ParamSpec

from nodeprep.model.facts import NodeFacts
from nodeprep.model.probe import ProbeResult
from nodeprep.model.reading import Unreadable
from nodeprep.model.result import CheckResult, Scalar, Status
from nodeprep.model.sighting import SiteRecords
from nodeprep.model.spec import NodeSpec

CheckPhase = Literal["static", "load"]
P = ParamSpec("P")


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """All a check may look at.

    Attributes:
        before: Facts from before the load; for `verify` the only ones.
        after: Facts from after the load; None when there was none. Its kernel_log reads on from
            before.log_cursor.
        probe: What the probe found; None when it did not run.
        probe_absent_reason: Why there is no probe result; load checks give it as their ERROR.
        site: What other runs of this site gave.
    """

    spec: NodeSpec
    before: NodeFacts
    after: NodeFacts | None = None
    probe: ProbeResult | None = None
    probe_absent_reason: str = ""
    site: SiteRecords = field(default_factory=SiteRecords)


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that must hold on a node.

    Attributes:
        id: The file's name; also docs/checks/ID.md and tests/cases/checks/ID/.
        title: Half a sentence for tables.
        phase: "static" needs facts only and runs in `verify`; "load" needs the probe.
        explains: Checks that fail as a consequence when this one fails on the same subject. They are
            told after it, so that the first reason of a verdict is the cause.
        evaluate: Yields one result a subject. Raise Unreadable (Reading.require does) for what
            could not be read: it becomes an ERROR on the node. Yield at least one result.
        tolerates: Readings that may be "not supported" without spoiling a pass, as shell patterns
            on their path in the document, each with the reason. Anything else that a passing check
            has read must not be missing, and a reading in error never passes; the contract test
            tries each of them.
    """

    id: str
    title: str
    phase: CheckPhase
    evaluate: Callable[[Context], Iterator[CheckResult]]
    explains: tuple[str, ...] = ()
    tolerates: Mapping[str, str] = field(default_factory=dict)

    def result(
        self,
        status: Status,
        subject: str,
        reason: str,
        *,
        measured: Scalar | None = None,
        limit: Scalar | None = None,
        unit: str = "",
        source: str = "",
        evidence: tuple[str, ...] = (),
    ) -> CheckResult:
        """A result of this check."""
        return CheckResult(
            id=self.id,
            subject=subject,
            status=status,
            reason=reason,
            measured=measured,
            limit=limit,
            unit=unit,
            source=source,
            evidence=evidence,
        )

    def on(
        self,
        subject: str,
        evidence: str,
        judge: Callable[P, CheckResult],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> CheckResult:
        """What `judge` says of one subject, or an ERROR on that subject alone when it cannot read.

        One unreadable GPU must neither pass nor hide what is known of its neighbours.

        Args:
            subject: Whom the ERROR is about.
            evidence: Pointer into the documents, added to a result that names none itself.
            judge: Returns the result; may raise Unreadable.
            *args: For `judge`.
            **kwargs: For `judge`.
        """
        try:
            result = judge(*args, **kwargs)
        except Unreadable as error:
            result = self.result("ERROR", subject, str(error))
        return result if result.evidence else replace(result, evidence=(evidence,))

    def run(self, context: Context) -> tuple[CheckResult, ...]:
        """All results; never raises and never returns nothing: both would look like health."""
        if self.phase == "load" and context.probe is None:
            why = context.probe_absent_reason or "the probe did not run"
            return (self.result("ERROR", "node", f"not measured: {why}"),)
        results: list[CheckResult] = []
        try:
            results.extend(self.evaluate(context))
        except Unreadable as error:
            results.append(self.result("ERROR", "node", str(error)))
        except Exception as error:  # a broken check must not pass, nor hide the others
            results.append(self.result("ERROR", "node", f"the check itself failed: {error!r}"))
        if not results:
            results.append(self.result("ERROR", "node", "there was nothing to look at, so nothing is known"))
        return tuple(results)
