"""Plan: what would change on each node, and what would not and why."""

from __future__ import annotations

from collections.abc import Mapping

from nodeprep.errors import NodeprepError, PolicyError
from nodeprep.knobs import build_plan
from nodeprep.model.plan import Plan
from nodeprep.workflows.outside import Outside
from nodeprep.workflows.session import Session


def plan(session: Session, *, label: str = "before") -> Mapping[str, Plan]:
    """The plan of every host that could be observed; the others are in the ledger with their error."""
    plans: dict[str, Plan] = {}
    for host, facts in session.observe(session.hosts, label=label).facts.items():
        try:
            plans[host] = build_plan(session.spec(facts), facts)
        except NodeprepError as error:
            session.record(host, "plan", "failed", error=error.message, hint=error.hint)
            continue
        session.save(f"plan/{host}.json", plans[host])
    return plans


def access_faults(session: Session) -> PolicyError | None:
    """What is wrong with the inventory's BMC access, which stops apply before it begins; None for nothing."""
    try:
        Outside.of(session.targets)
    except PolicyError as error:
        return error
    return None
