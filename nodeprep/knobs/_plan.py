"""NodeSpec + facts -> Plan: every knob asked, in the order of their names. Pure."""

from __future__ import annotations

from nodeprep.knobs._knob import Knob
from nodeprep.model.facts import NodeFacts
from nodeprep.model.plan import Plan
from nodeprep.model.spec import NodeSpec
from nodeprep.registry import discover


def all_knobs() -> tuple[Knob, ...]:
    """Every knob, in the order of their ids.

    Raises:
        NodeprepError: A module of this folder defines no KNOB, or one with another id.
        ImportError: A module does not import.
    """
    return tuple(discover("nodeprep.knobs", "KNOB").values())


def build_plan(spec: NodeSpec, facts: NodeFacts) -> Plan:
    """What would change on a node, and what would not and why."""
    changes = tuple(change for knob in all_knobs() for change in knob.plan(spec, facts))
    return Plan(
        host=spec.host,
        simulated=facts.simulated,
        profile=spec.profile.id,
        policy_digest=spec.policy_digest,
        changes=changes,
    )
