"""Loading nodes with the probe, and taking in what comes back."""

from __future__ import annotations

import errno
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from nodeprep.errors import DocumentError
from nodeprep.fleet import Outcome
from nodeprep.model.codec import decode, to_builtins
from nodeprep.model.facts import NodeFacts
from nodeprep.model.probe import ProbeResult
from nodeprep.model.run import HostState
from nodeprep.workflows.asking import Asked
from nodeprep.workflows.session import Session


@dataclass(frozen=True, slots=True, kw_only=True)
class Probed:
    """What came back from the node after the load."""

    after: NodeFacts | None = None
    result: ProbeResult | None = None
    absent_reason: str = ""
    hint: str = ""
    host_state: HostState = "done"
    """A host that was lost under load stays so, although a certificate says what was seen before."""


def probe(
    session: Session, asked: Mapping[str, Asked], before: Mapping[str, NodeFacts]
) -> Mapping[str, Probed]:
    """Loads every node that can be loaded; every host of `before` has an answer."""
    # Kernel logs and bug reports: for the eyes of whoever ran this.
    (session.run_dir / "evidence").mkdir(mode=0o700, exist_ok=True)
    probed: dict[str, Probed] = {}
    for host, facts in before.items():
        why = _why_not_to_probe(facts)
        if why:
            session.record(host, "probe", "done", error=f"not run: {why}")
            probed[host] = Probed(absent_reason=why)
    loaded = [host for host in before if host not in probed]
    if loaded:
        outcomes = session.fleet.run(
            "certify.yml",
            session.pick(loaded),
            phase="probe",
            extra_vars={"nodeprep_run_id": session.run_id, "nodeprep_run_dir": str(session.run_dir)},
            host_vars={host: _probe_vars(session, asked[host], before[host]) for host in loaded},
        )
        probed.update({host: _collect(session, outcomes[host]) for host in loaded})
        # A BIOS that was changed or staged under load is another machine than the one that was judged.
        seen = {host: each.after for host, each in probed.items() if each.after is not None}
        for host, after in session.look_at_bios(seen, label="after").items():
            probed[host] = replace(probed[host], after=after)
    return probed


def _why_not_to_probe(facts: NodeFacts) -> str:
    """Loading a node whose driver hangs adds a second hung process and no knowledge."""
    gpus = facts.nvml.gpus
    if gpus.value is None:
        return f"the GPUs could not be read: {gpus.detail}"
    if not gpus.value:
        return "NVML lists no GPU"
    return ""


def _probe_vars(session: Session, asked: Asked, facts: NodeFacts) -> dict[str, Any]:
    python = session.policy(facts.host).probe_python
    return {
        # The inventory's own nodeprep_probe_python stands where the policy names none.
        **({"nodeprep_probe_python": python} if python else {}),
        "nodeprep_probe_level": asked.level,
        "nodeprep_probe_workload": asked.workload,
        "nodeprep_probe_inject": asked.inject,
        **({"nodeprep_probe_duration_s": asked.soak_s} if asked.soak_s else {}),
        "nodeprep_since": to_builtins(facts.log_cursor),
    }


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
