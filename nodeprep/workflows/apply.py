"""Apply: plan, write, reboot where it takes that, look again.

What was not seen to be in effect afterwards is not applied.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from nodeprep.errors import NodeprepError, UsageError
from nodeprep.fleet import Outcome
from nodeprep.knobs import all_knobs, build_plan
from nodeprep.model.facts import NodeFacts
from nodeprep.model.outputs import Application
from nodeprep.model.plan import Plan
from nodeprep.model.trial import TrialReport
from nodeprep.workflows.bios_boot import BiosWork
from nodeprep.workflows.claim import Claim, claim
from nodeprep.workflows.outside import Outside
from nodeprep.workflows.session import Observed, Session
from nodeprep.workflows.trial import may_reboot, try_boot

KERNEL_ARGS, BIOS = "kernel_args", "bios"
# What the node itself does not write: one is for its trial boot, the other for its BMC.
_NOT_ON_NODE = (KERNEL_ARGS, BIOS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """How many hosts at a time, and after how many lost ones to stop.

    Attributes:
        batch: "5" or "25%"; None is all at once.
        max_failed: "2" or "10%"; None never stops. Failed, unreachable and missing hosts all count:
            Ansible's own max_fail_percentage leaves out the unreachable.
    """

    batch: str | None = None
    max_failed: str | None = None

    def batches(self, hosts: Sequence[str]) -> Iterator[Sequence[str]]:
        """The hosts in slices."""
        size = max(_share("--batch", self.batch, len(hosts)), 1) if self.batch else max(len(hosts), 1)
        for start in range(0, len(hosts), size):
            yield hosts[start : start + size]

    def check(self) -> None:
        """Refuses what makes no sense, before anything is done.

        Raises:
            UsageError: Not a number or a share, or a batch of no hosts.
        """
        if self.batch and not _number("--batch", self.batch)[0]:
            raise UsageError(f"--batch {self.batch}: that is no host at all", hint="1 is the smallest batch")
        if self.max_failed:
            _number("--max-failed", self.max_failed)

    def spent(self, failed: int, total: int) -> bool:
        """True when no further batch may start."""
        return self.max_failed is not None and failed > _share("--max-failed", self.max_failed, total)


def apply(
    session: Session, plans: Mapping[str, Plan], budget: Budget, *, reboot: bool = True
) -> Mapping[str, Application]:
    """Writes what the plans say is due; hosts with nothing to write are left alone.

    Args:
        plans: From `workflows.plan`, of this session.
        reboot: False leaves kernel arguments to be tried at the next boot, whoever causes it.

    A host for which kernel arguments are due, and whose BMC access in the inventory does not hold together,
    is failed before anything is written there.
    """
    with claim(session) as mine:
        return _apply(session, plans, budget, mine, reboot=reboot)


def _apply(
    session: Session, plans: Mapping[str, Plan], budget: Budget, mine: Claim, *, reboot: bool
) -> Mapping[str, Application]:
    settings = {host: _settings(session, host, plan) for host, plan in plans.items()}
    due = [host for host in plans if settings[host]]
    outside, faults = Outside.of_sound(session.pick([host for host in due if KERNEL_ARGS in settings[host]]))
    done: dict[str, Application] = {
        host: _result(host, plan, "unchanged") for host, plan in plans.items() if not settings[host]
    }
    failed = len(session.hosts) - len(plans)
    held = {host: (fault.message, fault.hint) for host, fault in faults.items()}
    held |= {host: mine.refusal(host) for host in due if mine.refusal(host)[0]}
    for host, (words, hint) in held.items():
        done[host] = _result(host, plans[host], "failed", error=words, hint=hint)
        session.record(host, "apply", "failed", error=words, hint=hint)
        failed += 1
    due = [host for host in due if host not in held]
    for batch in budget.batches(due):
        if budget.spent(failed, len(session.hosts)):
            for host in batch:
                done[host] = _result(
                    host, plans[host], "skipped", error="not started: too many hosts had failed before"
                )
                session.record(host, "apply", "unknown", error=done[host].error)
            continue
        wanted = {host: settings[host] for host in batch}
        for host, application in _apply_batch(session, plans, wanted, outside, mine, reboot=reboot).items():
            done[host] = application
            failed += application.state == "failed"
    return {host: done[host] for host in plans}


def _settings(session: Session, host: str, plan: Plan) -> dict[str, Any]:
    spec = session.specs[host]
    merged: dict[str, Any] = {}
    for knob in all_knobs():
        mine = tuple(change for change in plan.changes if change.knob == knob.id)
        if knob.settings is not None and any(change.status == "change" for change in mine):
            for key, value in knob.settings(spec, mine).items():
                merged.setdefault(key, {}).update(value)
    return merged


def _apply_batch(
    session: Session,
    plans: Mapping[str, Plan],
    settings: Mapping[str, Mapping[str, Any]],
    outside: Outside,
    mine: Claim,
    *,
    reboot: bool,
) -> dict[str, Application]:
    """What needs no reboot first: the reboot of the trial then shows that it lasts."""
    outcomes = dict(_write(session, settings))
    written = [host for host in settings if host not in outcomes or outcomes[host].state == "done"]
    edits = {host: settings[host][KERNEL_ARGS] for host in written if KERNEL_ARGS in settings[host]}
    bios = BiosWork(
        session,
        {host: settings[host].get(BIOS, {}) for host in written},
        reboot=reboot,
        obstacle=mine.reset_obstacle,
        look=mine.look_again,
    )
    bios.stage(edits)
    edits = {host: edit for host, edit in edits.items() if not bios.failed(host)}
    trials = try_boot(session, edits, outside, mine, reboot=reboot)
    bios.settle({host: trial.state for host, trial in trials.items()})
    bios.bring_into_effect(host for host in written if KERNEL_ARGS not in settings[host])
    waiting = [
        host
        for host in written
        if host in outcomes
        and KERNEL_ARGS not in settings[host]
        and _waits(outcomes[host])
        and not bios.was_reset(host)
    ]
    due = [host for host in waiting if may_reboot(session, host, asked=reboot)]
    held = mine.look_again(due)
    outcomes |= _reboot(session, [host for host in due if host not in held])
    for host, (words, hint) in held.items():
        session.record(host, "reboot", "failed", error=words, hint=hint)
        outcomes[host] = replace(outcomes[host], state="failed", error=words, hint=hint)
    there = [
        host for host in written if host not in trials or trials[host].state != "lost" or bios.was_reset(host)
    ]
    observed = (
        session.observe(there, label="after", phase="verify") if there else Observed(facts={}, failed={})
    )
    results: dict[str, Application] = {}
    for host in settings:
        plan, trial, outcome = plans[host], trials.get(host), outcomes.get(host)
        after = observed.facts.get(host)
        if outcome is not None and outcome.state != "done":
            results[host] = _result(host, plan, "failed", error=outcome.error, hint=outcome.hint, trial=trial)
        elif trial is not None and trial.state not in ("permanent", "armed"):
            results[host] = _not_booted(session, host, plan, trial, after)
        elif bios.failed(host):
            error, hint = bios.failure(host)
            results[host] = _result(host, plan, "failed", error=error, hint=hint, trial=trial)
        elif after is None:
            lost = observed.failed[host]
            results[host] = _result(host, plan, "failed", error=lost.error, hint=lost.hint, trial=trial)
        else:
            results[host] = _judge(
                session,
                host,
                plan,
                after,
                notes=_notes(outcome, trial),
                trial=trial,
                reboot=may_reboot(session, host, asked=reboot) or bios.was_reset(host),
            )
    return {host: bios.on(result, observed.facts.get(host)) for host, result in results.items()}


def _waits(outcome: Outcome) -> bool:
    """Whether something that was written comes into effect with the next boot only."""
    return any(isinstance(part, Mapping) and part.get("pending_reboot") for part in outcome.data.values())


def _reboot(session: Session, hosts: Sequence[str]) -> dict[str, Outcome]:
    """A plain reboot; a host's outcome keeps what its writes had said."""
    if not hosts:
        return {}
    outcomes = session.fleet.run(
        "reboot.yml",
        session.pick(hosts),
        phase="reboot",
        host_vars={host: {"nodeprep_trial_return_s": session.policy(host).trial.return_s} for host in hosts},
    )
    for host, outcome in outcomes.items():
        session.record(host, "reboot", outcome.state, error=outcome.error, hint=outcome.hint)
    return outcomes


def _write(session: Session, settings: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Outcome]:
    """Writes what needs no reboot to have effect; only hosts with any of that have an outcome."""
    now = {
        host: {key: value for key, value in wanted.items() if key not in _NOT_ON_NODE}
        for host, wanted in settings.items()
    }
    hosts = [host for host, wanted in now.items() if wanted]
    if not hosts:
        return {}
    outcomes = session.fleet.run(
        "apply.yml",
        session.pick(hosts),
        phase="apply",
        host_vars={host: {"nodeprep_settings": now[host]} for host in hosts},
    )
    for host, outcome in outcomes.items():
        session.record(host, "apply", outcome.state, error=outcome.error, hint=outcome.hint)
    return outcomes


def _not_booted(
    session: Session, host: str, before: Plan, trial: TrialReport, facts: NodeFacts | None
) -> Application:
    """A host whose trial boot did not end well; the words of its trial are the error."""
    reason = (
        "; ".join(f"{each.what}: {each.before}, now {each.now}" for each in trial.findings) or trial.reason
    )
    words = {
        "rolled_back": f"the trial boot was rolled back: {reason}",
        "unsettled": f"the trial is not over: {reason}",
        "lost": f"the node has not come back from its trial boot: {reason}",
    }.get(trial.state, reason)
    hints = {
        "rolled_back": "the old kernel arguments are permanent; --json has all of the evidence",
        "unsettled": "its permanent kernel arguments are the old ones or proven ones; apply again",
        "lost": "look at its console; after its trial boot every reset brings the old kernel arguments",
    }
    hint = hints.get(trial.state, "")
    session.record(host, "trial", "failed", error=words, hint=hint)
    after = None if facts is None else build_plan(session.spec(facts), facts)
    return _result(
        host,
        before,
        "failed",
        after=after,
        error=words,
        hint=hint,
        trial=trial,
        notes=trial.notes,
    )


def _judge(
    session: Session,
    host: str,
    before: Plan,
    facts: NodeFacts,
    *,
    notes: tuple[str, ...],
    trial: TrialReport | None,
    reboot: bool,
) -> Application:
    try:
        after = build_plan(session.spec(facts), facts)
    except NodeprepError as error:
        return _result(host, before, "failed", error=error.message, hint=error.hint, trial=trial)
    session.save(f"plan/{host}.after.json", after)
    written = {(change.knob, change.subject, change.new) for change in before.with_status("change")}
    writable = {knob.id for knob in all_knobs() if knob.settings is not None}
    open_changes = [
        change
        for change in after.changes
        if change.status != "ok"
        and change.knob in writable
        and (change.knob, change.subject, change.new) in written
    ]
    # What waits for the next boot, as asked, cannot be in effect yet.
    not_in_effect = [change for change in open_changes if reboot or not change.needs_reboot]
    if not_in_effect:
        first = not_in_effect[0]
        words = f"{first.knob} on {first.subject} was written and is not in effect: {first.old}"
        session.record(host, "verify", "failed", error=words)
        return _result(host, before, "failed", after=after, error=words, notes=notes, trial=trial)
    state = "armed" if open_changes else "applied"
    return _result(host, before, state, after=after, notes=notes, trial=trial)


def _notes(outcome: Outcome | None, trial: TrialReport | None) -> tuple[str, ...]:
    power = {} if outcome is None else outcome.data.get("gpu_power") or {}
    notes: tuple[str, ...] = ()
    if power and not power.get("persisted"):
        why = power.get("persisted_reason") or "no reason given"
        notes = (f"the GPU settings will not survive a reboot: {why}",)
    link = {} if outcome is None else outcome.data.get("pcie_link") or {}
    notes += (str(link["msg"]),) if link.get("msg") else ()
    return notes if trial is None else (*notes, *trial.notes)


def _result(host: str, before: Plan, state: Any, **more: Any) -> Application:
    return Application(
        host=host,
        simulated=before.simulated,
        state=state,
        before=before,
        after=more.get("after"),
        error=more.get("error", ""),
        hint=more.get("hint", ""),
        notes=more.get("notes", ()),
        trial=more.get("trial"),
    )


def _share(option: str, text: str, total: int) -> int:
    number, is_share = _number(option, text)
    return total * number // 100 if is_share else number


def _number(option: str, text: str) -> tuple[int, bool]:
    """The number, and whether it is a percentage."""
    match = re.fullmatch(r"(\d+)(%?)", text.strip())
    if match is None or (match[2] and int(match[1]) > 100):
        raise UsageError(f"{option} {text!r}: a number of hosts or a percentage is wanted", hint="5, or 10%")
    return int(match[1]), bool(match[2])
