"""Inspect: what the nodes really are, and what their BMCs measure. Changes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from nodeprep.model.bmc import BmcSensors
from nodeprep.model.facts import NodeFacts
from nodeprep.model.reading import Reading
from nodeprep.workflows.sensors import keep_sensors
from nodeprep.workflows.session import Session


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspected:
    """What one look gave.

    Attributes:
        facts: Of the hosts that answered, their sensors among them.
        sensors: Of every host: of one that does not answer, its BMC may be the only witness.
    """

    facts: Mapping[str, NodeFacts]
    sensors: Mapping[str, Reading[BmcSensors]]


def inspect(session: Session) -> Inspected:
    """Facts of every host of the session, and the sensors of its BMC."""
    seen = session.observe(session.hosts, label="now").facts
    sensors = keep_sensors(session, session.hosts, seen)
    facts = {host: with_sensors(found, sensors[host]) for host, found in seen.items()}
    for host, found in facts.items():
        session.save(f"facts/{host}.now.json", found)
    if any(found.simulated for found in facts.values()):
        session.ledger.describe(simulated=True)
    return Inspected(facts=facts, sensors=sensors)


def with_sensors(facts: NodeFacts, sensors: Reading[BmcSensors]) -> NodeFacts:
    """Facts of a node with what its BMC measures; a simulated BMC makes all of it simulated."""
    simulated = facts.simulated or (sensors.value is not None and sensors.value.simulated)
    return replace(facts, sensors=sensors, simulated=simulated)
