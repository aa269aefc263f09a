"""Apply: plan, write, look again. What was not seen to be in effect afterwards is not applied."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nodeprep.errors import NodeprepError, UsageError
from nodeprep.fleet import Outcome
from nodeprep.knobs import all_knobs, build_plan
from nodeprep.model.facts import NodeFacts
from nodeprep.model.outputs import Application
from nodeprep.model.plan import Plan
from nodeprep.workflows.session import Session


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


def apply(session: Session, plans: Mapping[str, Plan], budget: Budget) -> Mapping[str, Application]:
    """Writes what the plans say is due; hosts with nothing to write are left alone.

    Args:
        plans: From `workflows.plan`, of this session.

    """
    settings = {host: _settings(session, host, plan) for host, plan in plans.items()}
    due = [host for host in plans if settings[host]]
    done: dict[str, Application] = {
        host: _result(host, plan, "unchanged") for host, plan in plans.items() if not settings[host]
    }
    failed = len(session.hosts) - len(plans)
    for batch in budget.batches(due):
        if budget.spent(failed, len(session.hosts)):
            for host in batch:
                done[host] = _result(
                    host, plans[host], "skipped", error="not started: too many hosts had failed before"
                )
                session.record(host, "apply", "unknown", error=done[host].error)
            continue
        for host, application in _apply_batch(session, batch, plans, settings).items():
            done[host] = application
            failed += application.state == "failed"
    return {host: done[host] for host in plans}


def _settings(session: Session, host: str, plan: Plan) -> dict[str, Any]:
    spec = session.specs[host]
    merged: dict[str, Any] = {}
    for knob in all_knobs():
        due = tuple(change for change in plan.with_status("change") if change.knob == knob.id)
        if due and knob.settings is not None:
            for key, value in knob.settings(spec, due).items():
                merged.setdefault(key, {}).update(value)
    return merged


def _apply_batch(
    session: Session, batch: Sequence[str], plans: Mapping[str, Plan], settings: Mapping[str, Any]
) -> dict[str, Application]:
    outcomes = session.fleet.run(
        "apply.yml",
        session.pick(batch),
        phase="apply",
        host_vars={host: {"nodeprep_settings": settings[host]} for host in batch},
    )
    written = [host for host in batch if outcomes[host].state == "done"]
    observed = session.observe(written, label="after", phase="verify") if written else None
    results: dict[str, Application] = {}
    for host in batch:
        outcome = outcomes[host]
        session.record(host, "apply", outcome.state, error=outcome.error, hint=outcome.hint)
        if observed is None or host not in observed.facts:
            lost = outcome if host not in written or observed is None else observed.failed[host]
            results[host] = _result(host, plans[host], "failed", error=lost.error, hint=lost.hint)
            continue
        results[host] = _judge(session, host, plans[host], observed.facts[host], outcome)
    return results


def _judge(session: Session, host: str, before: Plan, facts: NodeFacts, outcome: Outcome) -> Application:
    try:
        after = build_plan(session.spec(facts), facts)
    except NodeprepError as error:
        return _result(host, before, "failed", error=error.message, hint=error.hint)
    session.save(f"plan/{host}.after.json", after)
    written = {(change.knob, change.subject) for change in before.with_status("change")}
    writable = {knob.id for knob in all_knobs() if knob.settings is not None}
    not_in_effect = [
        change
        for change in after.changes
        if change.status != "ok" and (change.knob, change.subject) in written and change.knob in writable
    ]
    notes = tuple(_notes(outcome))
    if not_in_effect:
        first = not_in_effect[0]
        words = f"{first.knob} on {first.subject} was written and is not in effect: {first.old}"
        session.record(host, "verify", "failed", error=words)
        return _result(host, before, "failed", after=after, error=words, notes=notes)
    return _result(host, before, "applied", after=after, notes=notes)


def _notes(outcome: Outcome) -> Iterator[str]:
    power = outcome.data.get("gpu_power") or {}
    if power and not power.get("persisted"):
        why = power.get("persisted_reason") or "no reason given"
        yield f"the GPU settings will not survive a reboot: {why}"


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
