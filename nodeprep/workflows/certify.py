"""Certify: inspect, verify, probe, judge; one signed certificate a node."""

from __future__ import annotations

import errno
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from nodeprep.certify.certificate import build_certificate
from nodeprep.certify.judge import judge
from nodeprep.certify.signing import SigningKey
from nodeprep.certify.statement import sign_certificate
from nodeprep.certify.waivers import expiry
from nodeprep.errors import DocumentError, NodeprepError, PolicyError, UsageError
from nodeprep.fleet import Outcome
from nodeprep.knobs import build_plan
from nodeprep.model.certificate import Certificate
from nodeprep.model.codec import decode, digest
from nodeprep.model.facts import NodeFacts
from nodeprep.model.policy import Level
from nodeprep.model.probe import ProbeResult
from nodeprep.model.run import HostState
from nodeprep.reports import write_report
from nodeprep.workflows.content import content_digest
from nodeprep.workflows.runs import load_view
from nodeprep.workflows.session import Session, now_text
from nodeprep.workflows.workloads import load_workload

# The probe knows which values fit its workload; what is no fault at all needs no node to be told.
_FAULT = re.compile(r"flip:[a-z]+=\w+(,[a-z]+=\w+)*")


@dataclass(frozen=True, slots=True, kw_only=True)
class CertifyOptions:
    """What `certify` was asked for beyond its hosts.

    Attributes:
        level: None takes each host's policy.
        workload: Name, or path of a YAML file; None takes each host's policy.
        inject: Fault for the probe to inject, for example "flip:block=7,bit=0"; never certifies.
        key: Private key file; None takes (or makes) the one in the home folder.
    """

    level: Level | None = None
    workload: str | None = None
    inject: str = ""
    key: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Certified:
    """One host's certificate, as written."""

    certificate: Certificate
    envelope: Mapping[str, Any]
    file: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Probed:
    """What came back from the node after the load."""

    after: NodeFacts | None = None
    result: ProbeResult | None = None
    absent_reason: str = ""
    hint: str = ""
    host_state: HostState = "done"
    """A host that was lost under load stays so, although a certificate says what was seen before."""


def certify(session: Session, options: CertifyOptions) -> Mapping[str, Certified]:
    """Certificates of every host that could be observed; the others are in the ledger.

    Writes facts, probe results, certificates and the report into the run folder.

    Raises:
        UsageError: The level or workload cannot be run by this version.
    """
    asked = {host: _asked(session, host, options) for host in session.hosts}
    keys = _Keys(session, options.key)
    before = session.observe(session.hosts, label="before").facts
    keys.open_for(before.values())

    for facts in before.values():
        _save_plan(session, facts)

    # Kernel logs and bug reports: for the eyes of whoever ran this.
    (session.run_dir / "evidence").mkdir(mode=0o700, exist_ok=True)
    reasons = {host: _why_not_to_probe(facts) for host, facts in before.items()}
    probed = {host: Probed(absent_reason=why) for host, why in reasons.items() if why}
    to_probe = [host for host, why in reasons.items() if not why]
    for host, why in reasons.items():
        if why:
            session.record(host, "probe", "done", error=f"not run: {why}")
    if to_probe:
        outcomes = session.fleet.run(
            "certify.yml",
            session.pick(to_probe),
            phase="probe",
            extra_vars={"nodeprep_run_id": session.run_id, "nodeprep_run_dir": str(session.run_dir)},
            host_vars={host: _probe_vars(session, asked[host], before[host]) for host in to_probe},
        )
        for host in to_probe:
            probed[host] = _collect(session, outcomes[host])

    certified: dict[str, Certified] = {}
    for host, facts in before.items():
        try:
            certified[host] = _issue(session, asked[host], keys, facts, probed[host])
        except NodeprepError as error:
            session.record(host, "judge", "failed", error=error.message, hint=error.hint)
            continue
        # The verdict ends the run; why the load failed, and what to do about it, must not go with it.
        seen = probed[host]
        session.record(host, "judge", seen.host_state, error=seen.absent_reason, hint=seen.hint)
    session.ledger.describe(
        level=_common(ask.level for ask in asked.values()),
        workload=_common(ask.workload_name for ask in asked.values()),
        simulated=any(facts.simulated for facts in before.values()),
    )
    session.ledger.close(ended_at=now_text())
    write_report(load_view(session.run_dir), "html", session.run_dir)
    return certified


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    level: Level
    workload: str | Mapping[str, Any]
    workload_name: str
    inject: str


def _asked(session: Session, host: str, options: CertifyOptions) -> _Asked:
    policy = session.policy(host).certify
    level = options.level or policy.level
    if level == "soak":
        raise UsageError(
            "the level soak is not available in this version",
            hint="the longest level is extended (two hours)",
        )
    if options.inject and not _FAULT.fullmatch(options.inject):
        raise UsageError(
            f"no fault {options.inject!r}", hint="for example flip:block=7,bit=0 (see docs/probe.md)"
        )
    workload = load_workload(options.workload or policy.workload)
    name = workload if isinstance(workload, str) else str(workload["name"])
    return _Asked(level=level, workload=workload, workload_name=name, inject=options.inject)


def _save_plan(session: Session, facts: NodeFacts) -> None:
    """What differs from the policy goes into the report; the checks judge it, this explains it."""
    try:
        session.save(f"plan/{facts.host}.json", build_plan(session.spec(facts), facts))
    except PolicyError as error:
        session.record(facts.host, "plan", "failed", error=error.message, hint=error.hint)


def _why_not_to_probe(facts: NodeFacts) -> str:
    """Loading a node whose driver hangs adds a second hung process and no knowledge."""
    gpus = facts.nvml.gpus
    if gpus.value is None:
        return f"the GPUs could not be read: {gpus.detail}"
    if not gpus.value:
        return "NVML lists no GPU"
    return ""


def _probe_vars(session: Session, asked: _Asked, facts: NodeFacts) -> dict[str, Any]:
    cursor = facts.log_cursor
    python = session.policy(facts.host).probe_python
    return {
        # The inventory's own nodeprep_probe_python stands where the policy names none.
        **({"nodeprep_probe_python": python} if python else {}),
        "nodeprep_probe_level": asked.level,
        "nodeprep_probe_workload": asked.workload,
        "nodeprep_probe_inject": asked.inject,
        "nodeprep_since": {
            "boot_id": cursor.boot_id,
            "sequence": _plain(cursor.sequence),
            "monotonic_us": _plain(cursor.monotonic_us),
        },
    }


def _plain(reading: Any) -> dict[str, Any]:
    return {"state": reading.state, "value": reading.value, "detail": reading.detail}


def _collect(session: Session, outcome: Outcome) -> Probed:
    """What the node sent back; whatever is missing is said, and never taken for a good sign."""
    # The look after the load counts also, and above all, when the load itself went wrong.
    looked = replace(outcome, state="done") if "facts" in outcome.data else outcome
    after = session.parse_facts(looked, label="after")
    problem = ""
    result: ProbeResult | None = None
    file = session.run_dir / "probe" / outcome.host / "result.json"
    try:
        result = decode(file.read_bytes(), ProbeResult, source=str(file))
    except FileNotFoundError:
        job = outcome.data.get("probe") or {}
        # What kept the probe from starting says more than that there is none.
        missing = job.get("state") in (None, "absent")
        words = (outcome.error, job.get("error")) if missing else (job.get("error"), outcome.error)
        problem = next(filter(None, words), "the probe left no result")
    except OSError as error:
        full = " (the disk is full)" if error.errno == errno.ENOSPC else ""
        problem = f"{file} cannot be read: {error.strerror}{full}"
    except DocumentError as error:
        problem = error.message
    if result is not None and result.run != session.run_id:
        problem = f"the probe result is of run {result.run or '(none)'}, not of {session.run_id}"
        result = None
    session.record(
        outcome.host,
        "probe",
        "done" if result is not None and outcome.state == "done" else _lost(outcome),
        error=problem or outcome.error,
        hint=outcome.hint,
    )
    return Probed(
        after=after if isinstance(after, NodeFacts) else None,
        result=result,
        absent_reason=problem,
        hint=outcome.hint or (result.hint if result else ""),
        host_state=outcome.state if outcome.state in ("unreachable", "missing") else "done",
    )


def _lost(outcome: Outcome) -> Any:
    return outcome.state if outcome.state != "done" else "failed"


def _issue(session: Session, asked: _Asked, keys: _Keys, before: NodeFacts, probed: Probed) -> Certified:
    spec = session.spec(before)
    judgement = judge(
        spec,
        before,
        after=probed.after,
        probe=probed.result,
        probe_absent_reason=probed.absent_reason,
        asked_level=asked.level,
        asked_workload=asked.workload_name,
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


class _Keys:
    """The signing keys of a run: a real one, a simulated one, each opened before any load runs.

    A run that ends after an hour of load with "cannot write the key" would waste the hour.
    """

    def __init__(self, session: Session, given: Path | None) -> None:
        self._given = given
        self._folder = session.home.keys
        self._keys: dict[bool, SigningKey] = {}

    def open_for(self, facts: Any) -> None:
        """Opens the keys that certificates about these nodes will need."""
        for simulated in sorted({each.simulated for each in facts}):
            self._open(simulated=simulated)

    def for_certificate(self, certificate: Certificate) -> SigningKey:
        """The key of the certificate's own kind."""
        # A real node whose probe computed on the CPU ends with a simulated certificate.
        return self._keys.get(certificate.simulated) or self._open(simulated=certificate.simulated)

    def _open(self, *, simulated: bool) -> SigningKey:
        name = "simulated" if simulated else "nodeprep"
        path = self._given or self._folder / f"{name}.pem"
        key = SigningKey.load_or_create(path, simulated=simulated, create=self._given is None)
        self._keys[simulated] = key
        return key


def _common(values: Any) -> str:
    distinct = sorted(set(values))
    return distinct[0] if len(distinct) == 1 else "mixed" if distinct else ""
