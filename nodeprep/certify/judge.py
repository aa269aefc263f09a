"""The verdict. Fail closed: a node is certified only when everything was asked, answered and good.

Any FAIL that nobody waived: rejected. Else any ERROR, or anything that keeps the answer from
being whole (no probe, an injected fault, a reboot half-way, a machine that cannot be named):
inconclusive. Only else: certified.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from nodeprep.certify.configuration import configuration_of, same
from nodeprep.certify.identity import identity_problems, is_readable
from nodeprep.certify.waivers import lapsed, waived
from nodeprep.checks import CheckPhase, Context, all_checks, evaluate
from nodeprep.model.facts import NodeFacts
from nodeprep.model.probe import ProbeResult
from nodeprep.model.result import CheckResult, Verdict
from nodeprep.model.sighting import SiteRecords
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
    asked_level: str | None = None,
    asked_workload: str | None = None,
    site: SiteRecords | None = None,
    phases: Collection[CheckPhase] = BOTH_PHASES,
) -> Judgement:
    """Runs the checks of the given phases and concludes.

    Args:
        spec: What the node should be.
        before: Facts from before the load.
        after: Facts from after it.
        probe: What the node did under load.
        probe_absent_reason: Why there is no probe result.
        asked_level: What the probe had to run; None does not ask.
        asked_workload: Name of the workload that it had to run; None does not ask.
        site: What other runs of this site gave; None remembers nothing.
        phases: ("static",) for the effect checks alone; the default asks for a whole certificate.
    """
    context = Context(
        spec=spec,
        before=before,
        after=after,
        probe=probe,
        probe_absent_reason=probe_absent_reason,
        site=site or SiteRecords(),
    )
    asked = [check for check in all_checks().values() if check.phase in phases]
    return conclude(
        context,
        evaluate(context, phases),
        expected=[check.id for check in asked],
        under_load="load" in phases,
        explains={check.id: check.explains for check in asked},
        asked_level=asked_level,
        asked_workload=asked_workload,
    )


def conclude(
    context: Context,
    results: Sequence[CheckResult],
    *,
    expected: Collection[str],
    under_load: bool,
    explains: Mapping[str, Collection[str]] | None = None,
    asked_level: str | None = None,
    asked_workload: str | None = None,
) -> Judgement:
    """The verdict over results that are there already.

    Args:
        context: What the checks looked at.
        results: Of the checks, unwaived.
        expected: Ids that must each have answered.
        under_load: Whether a certificate is asked for, which needs the probe and facts after it.
        explains: Check to the checks that fail because of it, for the order of the reasons.
        asked_level: As `judge`.
        asked_workload: As `judge`.
    """
    silent = [_silent(check) for check in expected if all(result.id != check for result in results)]
    checks = (*(waived(_named(result), context.spec) for result in results), *silent)
    failed = [line_of(result) for result in _causes_first(checks, explains or {})]
    unread = [line_of(result) for result in checks if result.status == "ERROR"]
    gaps = list(_nothing_proven(checks))
    if under_load:
        gaps += identity_problems(context.before)
        gaps += _probe_gaps(context, asked_level, asked_workload)
        gaps += _after_gaps(context)
    reasons = (*failed, *unread, *gaps, *lapsed(context.spec, checks))
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


def line_of(result: CheckResult) -> str:
    """A result as a reason of a verdict."""
    subject = "" if result.subject == "node" else f" {result.subject}"
    return f"{result.id}{subject}: {result.reason}"


# What keeps the answer from being whole. No waiver covers any of it.


def _nothing_proven(checks: Sequence[CheckResult]) -> Iterator[str]:
    if not checks:
        yield "no check ran"
    elif all(result.status != "PASS" for result in checks):
        yield "no check passed: nothing was proven"


def _probe_gaps(context: Context, level: str | None, workload: str | None) -> Iterator[str]:
    probe = context.probe
    if probe is None:
        yield f"the node was not loaded: {context.probe_absent_reason or 'the probe did not run'}"
        return
    if probe.backend == "tensorrt":
        yield "the probe ran on the backend tensorrt, and certificates speak of torch"
    if probe.injected:
        yield f"a fault was injected on purpose ({probe.injected}): this run can never certify"
    if probe.state != "completed":
        yield f"the probe was {probe.state}: {probe.error or 'no reason given'}"
    if level not in (None, probe.level):
        yield f"the probe ran at level {probe.level}, and {level} was asked for"
    if workload not in (None, probe.workload.name):
        yield f"the probe ran workload {probe.workload.name}, and {workload} was asked for"
    known = {gpu.pci_address: gpu.uuid.value for gpu in context.before.nvml.gpus.value or ()}
    yield from _loaded_gaps(probe, known)


def _loaded_gaps(probe: ProbeResult, known: Mapping[str, str | None]) -> Iterator[str]:
    """Whether each GPU of this node, and no other, was loaded. Addresses repeat from node to node."""
    for gpu in probe.gpus:
        address = gpu.pci_address
        if gpu.state != "completed":
            yield f"the probe of GPU {address} was {gpu.state}: {gpu.error or 'no reason given'}"
        elif address not in known:
            yield f"the probe loaded GPU {address}, which NVML did not list before"
        elif known[address] not in (None, gpu.uuid):
            found = gpu.uuid or "of no UUID"
            yield f"the probe loaded another GPU at {address}: {found}, not {known[address]}"
    loaded = {gpu.pci_address for gpu in probe.gpus}
    for address in sorted(known.keys() - loaded):
        yield f"GPU {address} was not loaded"
    if not loaded:
        yield "the probe loaded no GPU"


def _after_gaps(context: Context) -> Iterator[str]:
    before, after = context.before, context.after
    if after is None:
        yield "the node was not observed after the load"
        return
    boots = before.boot.boot_id.value, after.boot.boot_id.value
    if None in boots:
        yield "whether the node rebooted during the run is not known: its boot id could not be read"
    elif boots[0] != boots[1]:
        yield "the node rebooted during the run"
    yield from identity_problems(after)
    yield from _machine_changes(before, after)
    was, now = configuration_of(before).values, configuration_of(after).values
    for key in sorted(was.keys() & now.keys()):
        if is_readable(was[key]) and is_readable(now[key]) and not same(key, was[key], now[key]):
            yield f"{key} changed during the run, from {was[key]} to {now[key]}"


def _machine_changes(before: NodeFacts, after: NodeFacts) -> Iterator[str]:
    """Two looks under one inventory name can be at two machines: an address that moved, a balancer."""
    named = {
        "product UUID": (before.dmi.product_uuid, after.dmi.product_uuid),
        "product serial": (before.dmi.product_serial, after.dmi.product_serial),
        "board serial": (before.dmi.board_serial, after.dmi.board_serial),
    }
    for name, (was, now) in named.items():
        if None not in (was.value, now.value) and was.value != now.value:
            change = f"from {was.value} to {now.value}"
            yield f"another machine answered: the {name} changed during the run, {change}"
    if before.nvml.gpus.value is None or after.nvml.gpus.value is None:
        return
    uuids = [{gpu.uuid.value for gpu in facts.nvml.gpus.value or ()} for facts in (before, after)]
    if None in uuids[0] | uuids[1] or uuids[0] == uuids[1]:
        return
    gone, new = (", ".join(sorted(map(str, found))) for found in (uuids[0] - uuids[1], uuids[1] - uuids[0]))
    yield f"the GPUs changed during the run: gone {gone or 'none'}, new {new or 'none'}"


def _simulated(context: Context) -> bool:
    """The NumPy backend computes on the CPU: whatever it finds says nothing about a GPU."""
    probe = context.probe
    return (
        context.before.simulated
        or (context.after is not None and context.after.simulated)
        or (probe is not None and (probe.simulated or probe.backend != "torch"))
    )
