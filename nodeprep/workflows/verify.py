"""Verify: is the effect of the policy there, without load?"""

from __future__ import annotations

from collections.abc import Mapping

from nodeprep.certify.judge import judge
from nodeprep.checks import CheckPhase
from nodeprep.errors import NodeprepError
from nodeprep.model.result import Effect, Verdict, Verification
from nodeprep.workflows.session import Session

_STATIC: tuple[CheckPhase, ...] = ("static",)
_EFFECT: Mapping[Verdict, Effect] = {
    "certified": "in_effect",
    "rejected": "not_in_effect",
    "inconclusive": "inconclusive",
}


def verify(session: Session) -> Mapping[str, Verification]:
    """The static checks of every host that could be observed."""
    found: dict[str, Verification] = {}
    for host, facts in session.observe(session.hosts, label="now").facts.items():
        try:
            spec = session.spec(facts)
        except NodeprepError as error:
            session.record(host, "verify", "failed", error=error.message, hint=error.hint)
            continue
        judgement = judge(spec, facts, phases=_STATIC)
        found[host] = Verification(
            host=host,
            simulated=facts.simulated,
            profile=spec.profile.id,
            policy_digest=spec.policy_digest,
            outcome=_EFFECT[judgement.verdict],
            checks=judgement.checks,
        )
        session.save(f"verify/{host}.json", found[host])
    return found
