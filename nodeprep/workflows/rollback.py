"""Rollback: nodes as they were before nodeprep first changed them, as far as their restore points reach."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from nodeprep.fleet import Outcome
from nodeprep.model.facts import NodeFacts
from nodeprep.model.outputs import Rollback
from nodeprep.workflows.bios_back import BiosBack
from nodeprep.workflows.claim import Claim, claim
from nodeprep.workflows.session import Session
from nodeprep.workflows.trial import may_reboot

PHASE = "rollback"


def rollback(session: Session, *, reboot: bool = True) -> Mapping[str, Rollback]:
    """Takes back what nodeprep did on every host that answers; the others are in the ledger with their error.

    Args:
        reboot: False leaves it to the next boot to bring old kernel arguments into effect.
    """
    observed = session.observe(session.hosts, label="before")
    with claim(session) as mine:
        return _rollback(session, observed.facts, mine, reboot=reboot)


def _rollback(
    session: Session, facts: Mapping[str, NodeFacts], mine: Claim, *, reboot: bool
) -> Mapping[str, Rollback]:
    held = {host: mine.refusal(host) for host in facts if mine.refusal(host)[0]}
    hosts = [host for host in facts if host not in held]
    unread = {host: facts[host].bios.detail for host in hosts if facts[host].bios.state == "error"}
    bios = BiosBack(
        session,
        hosts,
        unread=unread,
        reboot=reboot,
        obstacle=mine.reset_obstacle,
        look=mine.look_again,
    )
    bios.stage()
    outcomes = session.fleet.run(
        "rollback.yml",
        session.pick(hosts),
        phase=PHASE,
        host_vars={
            host: {
                "nodeprep_trial_reboot": may_reboot(session, host, asked=reboot),
                "nodeprep_trial_return_s": session.policy(host).trial.return_s,
                "nodeprep_trial_owner": mine.owner(host),
            }
            for host in hosts
        },
    )
    mine.hear(outcomes)
    outcomes = {**outcomes, **{host: Outcome(host, "failed", {}, *why) for host, why in held.items()}}
    for host, outcome in outcomes.items():
        session.record(host, PHASE, outcome.state, error=outcome.error, hint=outcome.hint)
    bios.finish()
    through = [host for host, outcome in outcomes.items() if outcome.state == "done"]
    after = session.observe(through, label="after", phase="verify").facts if through else {}
    return {host: bios.on(_told(outcome, facts[host], after.get(host))) for host, outcome in outcomes.items()}


def _told(outcome: Outcome, before: NodeFacts, after: NodeFacts | None) -> Rollback:
    arguments: Mapping[str, Any] = outcome.data.get("kernel_args", {})
    restored = tuple(sorted(map(str, outcome.data.get(PHASE, {}).get("changed", ()))))
    return Rollback(
        host=outcome.host,
        simulated=before.simulated,
        state=_state(outcome, arguments, restored, after),
        restored=restored,
        cmdline_before=before.boot.cmdline.value or "",
        cmdline_after="" if after is None else after.boot.cmdline.value or "",
        error=outcome.error,
        hint=outcome.hint,
        notes=tuple(_notes(outcome)),
    )


def _notes(outcome: Outcome) -> Iterator[str]:
    """What each group of settings had to say about being taken back."""
    for group in outcome.data.values():
        if isinstance(group, Mapping):
            yield from map(str, group.get("notes") or ())
            if group.get("msg") and not group.get("failed"):
                yield str(group["msg"])


def _state(
    outcome: Outcome, arguments: Mapping[str, Any], restored: tuple[str, ...], after: NodeFacts | None
) -> Any:
    if outcome.state != "done" or after is None:
        return "failed"
    if arguments.get("needs_reboot"):
        return "reboot_needed"
    return "restored" if restored else "nothing"
