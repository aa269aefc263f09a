"""The verdict. Fail closed: a node is certified only when everything was asked, answered and good.

Any FAIL that nobody waived: rejected. Else any ERROR, or anything that keeps the answer from
being whole (no probe, an injected fault, a reboot half-way, a machine that cannot be named):
inconclusive. Only else: certified.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from nodeprep.certify.configuration import configuration_of
from nodeprep.certify.identity import identity_problems, is_readable
from nodeprep.checks import CheckPhase, Context, all_checks, evaluate
from nodeprep.model.facts import NodeFacts
from nodeprep.model.probe import ProbeResult
from nodeprep.model.result import CheckResult, Verdict
from nodeprep.model.spec import NodeSpec

BOTH_PHASES: tuple[CheckPhase, ...] = ("static", "load")


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """A verdict with all it rests on.

    Attributes:
        checks: All results, waivers applied.
        reasons: Why not "certified", one line each; empty when certified.
        simulated: Any part of the evidence was not the real machine.
    """

    verdict: Verdict
    checks: tuple[CheckResult, ...]
    reasons: tuple[str, ...]
    simulated: bool


def judge(
    spec: NodeSpec,
    before: NodeFacts,
    *,
    after: NodeFacts | None = None,
    probe: ProbeResult | None = None,
    probe_absent_reason: str = "",
    phases: Collection[CheckPhase] = BOTH_PHASES,
) -> Judgement:
    """Runs the checks of the given phases and concludes.

    Args:
        spec: What the node should be.
        before: Facts from before the load.
        after: Facts from after it.
        probe: What the node did under load.
        probe_absent_reason: Why there is no probe result.
        phases: ("static",) for the effect checks alone; the default asks for a whole certificate.
    """
    context = Context(
        spec=spec, before=before, after=after, probe=probe, probe_absent_reason=probe_absent_reason
    )
    asked = [check for check in all_checks().values() if check.phase in phases]
    return conclude(
        context,
        evaluate(context, phases),
        expected=[check.id for check in asked],
        under_load="load" in phases,
        explains={check.id: check.explains for check in asked},
    )


def conclude(
    context: Context,
    results: Sequence[CheckResult],
    *,
    expected: Collection[str],
    under_load: bool,
    explains: Mapping[str, Collection[str]] | None = None,
) -> Judgement:
    """The verdict over results that are there already.

    Args:
        context: What the checks looked at.
        results: Of the checks, unwaived.
        expected: Ids that must each have answered.
        under_load: Whether a certificate is asked for, which needs the probe and facts after it.
        explains: Check to the checks that fail because of it, for the order of the reasons.
    """
    silent = [_silent(check) for check in expected if all(result.id != check for result in results)]
    checks = (*(_waived(_named(result), context.spec) for result in results), *silent)
    failed = [_line(result) for result in _causes_first(checks, explains or {})]
    unread = [_line(result) for result in checks if result.status == "ERROR"]
    gaps = list(_gaps(context, checks, under_load=under_load))
    reasons = (*failed, *unread, *gaps, *_lapsed(context.spec, checks))
    verdict: Verdict = "rejected" if failed else "inconclusive" if unread or gaps else "certified"
    return Judgement(
        verdict=verdict,
        checks=checks,
        reasons=tuple(dict.fromkeys(reasons)),
        simulated=_simulated(context),
    )


def _causes_first(
    checks: Sequence[CheckResult], explains: Mapping[str, Collection[str]]
) -> Iterator[CheckResult]:
    """The failed results; what another of them explains comes last."""
    failed = [result for result in checks if result.status == "FAIL"]

    def is_explained(result: CheckResult) -> bool:
        return any(
            result.id in explains.get(other.id, ()) and other.subject in (result.subject, "node")
            for other in failed
        )

    return iter(sorted(failed, key=is_explained))


def _silent(check: str) -> CheckResult:
    return CheckResult(id=check, subject="node", status="ERROR", reason="the check gave no result")


def _named(result: CheckResult) -> CheckResult:
    """A SKIPPED must say why it does not apply; one that does not is an unanswered question."""
    if result.status == "SKIPPED" and not result.reason.strip():
        return replace(result, status="ERROR", reason="skipped without a reason")
    return result


def _waived(result: CheckResult, spec: NodeSpec) -> CheckResult:
    if result.status not in ("FAIL", "ERROR"):
        return result
    for waiver in spec.waivers:
        if waiver.check == result.id and fnmatchcase(spec.host, waiver.host):
            return replace(result, status="SKIPPED", waiver=waiver, waived_status=result.status)
    return result


def _lapsed(spec: NodeSpec, checks: Sequence[CheckResult]) -> Iterator[str]:
    """Expired waivers that would have mattered."""
    for waiver in spec.expired_waivers:
        if any(result.id == waiver.check and result.status in ("FAIL", "ERROR") for result in checks):
            yield f"{waiver.check}: the waiver by {waiver.owner} ended on {waiver.until} and was not applied"


def _line(result: CheckResult) -> str:
    subject = "" if result.subject == "node" else f" {result.subject}"
    return f"{result.id}{subject}: {result.reason}"


def _gaps(context: Context, checks: Sequence[CheckResult], *, under_load: bool) -> Iterator[str]:
    """What keeps the answer from being whole. No waiver covers any of it."""
    if not checks:
        yield "no check ran"
    elif all(result.status != "PASS" for result in checks):
        yield "no check passed: nothing was proven"
    if context.before.host != context.spec.host:
        yield f"the facts are of {context.before.host!r}, not of {context.spec.host!r}"
    if under_load:
        yield from identity_problems(context.before)
        yield from _probe_gaps(context)
        yield from _after_gaps(context)


def _probe_gaps(context: Context) -> Iterator[str]:
    probe = context.probe
    if probe is None:
        yield f"the node was not loaded: {context.probe_absent_reason or 'the probe did not run'}"
        return
    if probe.injected:
        yield f"a fault was injected on purpose ({probe.injected}): this run can never certify"
    if probe.state != "completed":
        yield f"the probe was {probe.state}: {probe.error or 'no reason given'}"
    for gpu in probe.gpus:
        if gpu.state != "completed":
            yield f"the probe of GPU {gpu.pci_address} was {gpu.state}: {gpu.error or 'no reason given'}"
    loaded = {gpu.pci_address for gpu in probe.gpus}
    known = {gpu.pci_address for gpu in context.before.nvml.gpus.value or ()}
    for address in sorted(known - loaded):
        yield f"GPU {address} was not loaded"
    if not loaded:
        yield "the probe loaded no GPU"


def _after_gaps(context: Context) -> Iterator[str]:
    before, after = context.before, context.after
    if after is None:
        yield "the node was not observed after the load"
        return
    if after.host != before.host:
        yield f"the facts from after the load are of {after.host!r}, not of {before.host!r}"
    boots = before.boot.boot_id.value, after.boot.boot_id.value
    if None in boots:
        yield "whether the node rebooted during the run is not known: its boot id could not be read"
    elif boots[0] != boots[1]:
        yield "the node rebooted during the run"
    yield from identity_problems(after)
    was, now = configuration_of(before).values, configuration_of(after).values
    for key in sorted(was.keys() & now.keys()):
        if was[key] != now[key] and is_readable(was[key]) and is_readable(now[key]):
            yield f"{key} changed during the run, from {was[key]} to {now[key]}"


def _simulated(context: Context) -> bool:
    """The NumPy backend computes on the CPU: whatever it finds says nothing about a GPU."""
    probe = context.probe
    return (
        context.before.simulated
        or (context.after is not None and context.after.simulated)
        or (probe is not None and (probe.simulated or probe.backend != "torch"))
    )
