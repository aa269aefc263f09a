"""Certify: inspect, verify, probe, judge; one signed certificate a node."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from nodeprep.certify.certificate import build_certificate
from nodeprep.certify.identity import machine_key
from nodeprep.certify.judge import judge
from nodeprep.certify.statement import sign_certificate
from nodeprep.certify.waivers import expiry
from nodeprep.errors import NodeprepError, PolicyError
from nodeprep.fleet.disk import DiskError
from nodeprep.knobs import build_plan
from nodeprep.model.certificate import Certificate
from nodeprep.model.codec import digest
from nodeprep.model.facts import NodeFacts
from nodeprep.model.sighting import Sighting, SiteRecords, sightings_of
from nodeprep.reports import write_report
from nodeprep.workflows.asking import Asked, CertifyOptions, ask
from nodeprep.workflows.content import content_digest
from nodeprep.workflows.probing import Probed, probe
from nodeprep.workflows.runs import load_view
from nodeprep.workflows.sensors import keep_sensors
from nodeprep.workflows.session import Session, now_text
from nodeprep.workflows.signing_keys import SigningKeys
from nodeprep.workflows.site_memory import SiteMemory


@dataclass(frozen=True, slots=True, kw_only=True)
class Certified:
    """One host's certificate, as written."""

    certificate: Certificate
    envelope: Mapping[str, Any]
    file: Path


def certify(session: Session, options: CertifyOptions) -> Mapping[str, Certified]:
    """Certificates of every host that could be observed; the others are in the ledger.

    Writes facts, the BMCs' sensors, probe results, certificates and the report into the run folder.

    Raises:
        UsageError: The level or workload cannot be run by this version.
    """
    asked = {host: ask(session.policy(host), options) for host in session.hosts}
    keys = SigningKeys(session.home, options.key)
    before = session.observe(session.hosts, label="before").facts
    keys.open_for(before.values())
    # A policy that does not fit a node's GPUs is found before the load, not after it.
    before = {host: facts for host, facts in before.items() if _save_plan(session, facts)}
    sensors = keep_sensors(session, before, before, label="before")
    probed = probe(session, asked, before)
    # A BMC that gave nothing before is not waited for again; one of a node that was lost is the best witness.
    keep_sensors(session, [host for host, one in sensors.items() if one.value is not None], {}, label="after")

    memory = SiteMemory(session.home)
    new = {host: _sightings(facts, probed[host]) for host, facts in before.items()}
    site = memory.recall()
    # Nodes that were loaded together are each other's witnesses too.
    site = replace(site, sightings=(*site.sightings, *(one for found in new.values() for one in found)))
    certified: dict[str, Certified] = {}
    for host, facts in before.items():
        try:
            records = replace(site, node=machine_key(facts))
            certified[host] = _issue(session, asked[host], keys, facts, probed[host], site=records)
        except NodeprepError as error:
            session.record(host, "judge", "failed", error=error.message, hint=error.hint)
            continue
        # The verdict ends the run; why the load failed, and what to do about it, must not go with it.
        seen = probed[host]
        lost = _remember(memory, new[host], certified[host].certificate)
        session.record(
            host, "judge", seen.host_state, error=seen.absent_reason or lost, hint=seen.hint or lost
        )
    session.ledger.describe(
        level=_common(each.level for each in asked.values()),
        workload=_common(each.workload_name for each in asked.values()),
        simulated=any(facts.simulated for facts in before.values()),
    )
    session.ledger.close(ended_at=now_text())
    write_report(load_view(session.run_dir), "html", session.run_dir)
    return certified


def _save_plan(session: Session, facts: NodeFacts) -> bool:
    """What differs from the policy, for the report; false when the policy does not fit the node."""
    try:
        session.save(f"plan/{facts.host}.json", build_plan(session.spec(facts), facts))
    except PolicyError as error:
        session.record(facts.host, "plan", "failed", error=error.message, hint=error.hint)
        return False
    return True


def _sightings(before: NodeFacts, probed: Probed) -> tuple[Sighting, ...]:
    """What the load of one node adds to the site's memory, if its verdict allows."""
    if probed.result is None:
        return ()
    node = machine_key(before)
    return tuple(sightings_of(probed.result, node=node, host=before.host, time=now_text()))


def _remember(memory: SiteMemory, sightings: tuple[Sighting, ...], certificate: Certificate) -> str:
    """Teaches the site, but by no node that was rejected; why that failed, "" when it did not.

    The certificate is written and stands: a full disk must not make it a failed run.
    """
    try:
        if certificate.verdict != "rejected":
            memory.remember(sightings)
    except DiskError as error:
        return f"what this node gave was not kept for later comparison: {error.message}"
    return ""


def _issue(
    session: Session,
    asked: Asked,
    keys: SigningKeys,
    before: NodeFacts,
    probed: Probed,
    *,
    site: SiteRecords,
) -> Certified:
    spec = session.spec(before)
    judgement = judge(
        spec,
        before,
        after=probed.after,
        probe=probed.result,
        probe_absent_reason=probed.absent_reason,
        asked_level=asked.level,
        asked_workload=asked.workload_name,
        site=site,
    )
    now = datetime.now(UTC)
    certificate = build_certificate(
        run=session.run_id,
        spec=spec,
        judgement=judgement,
        before=before,
        after=probed.after,
        probe=probed.result,
        level=asked.level,
        workload=asked.workload_name,
        issued=now,
        expires=expiry(now, spec.policy.certify.valid_days, judgement.checks),
        digests={"content": content_digest(), "policy": digest(spec.policy)},
    )
    envelope = sign_certificate(certificate, keys.for_certificate(certificate))
    file = session.save(f"certificates/{before.host}.json", envelope)
    return Certified(certificate=certificate, envelope=envelope, file=file)


def _common(values: Iterable[str]) -> str:
    """The one value of all hosts; "mixed" where they differ."""
    distinct = sorted(set(values))
    return distinct[0] if len(distinct) == 1 else "mixed" if distinct else ""
