"""Trial boot: new kernel arguments are booted once, judged, and only then made permanent.

The node's own state machine (nodeprep/node/trial.py) decides whether a boot was good and what becomes
permanent; here the reboot is waited for, and a node that does not come back is fetched back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Literal

from nodeprep.fleet import FleetEvent, Outcome
from nodeprep.model.trial import TrialEvidence, TrialFinding, TrialReport, TrialState
from nodeprep.node.trial_words import MARKER
from nodeprep.workflows.claim import Claim
from nodeprep.workflows.outside import NO_BMC_WARNING, Outside
from nodeprep.workflows.session import Session

PHASE = "trial"
_RECOVER = "recover"
# A node that is up answers within this time; one that hangs is then left to its BMC.
_UP_S = 60
# Drivers and services that are late are waited for, once.
_SETTLE_S = 60
# A power cycle that meets a node in its firmware only brings the trial's boot; the next one ends it.
_CYCLES = 2
_RESULTS = "kernel_args"
# Source: OpenSSH, sshconnect2.c and sshconnect.c.
_REFUSED_LOGINS = ("permission denied (", "host key verification failed")

RecoveredBy = Literal["itself", "controller", "bmc"]


def try_boot(
    session: Session,
    edits: Mapping[str, Mapping[str, Any]],
    outside: Outside,
    claim: Claim,
    *,
    reboot: bool = True,
) -> dict[str, TrialReport]:
    """Tries the kernel arguments of some hosts; every host that took a boot, or was to, has a report.

    Args:
        edits: By host, what the module `kernel_args` is given.
        outside: BMCs and console logs of these hosts.
        claim: What this run may do to them.
        reboot: False leaves the next boot, whoever causes it, to be the trial.
    """
    if not edits:
        return {}
    reports: dict[str, TrialReport] = {}
    hosts = list(edits)
    # A host that waits for one of Ansible's workers after its boot would be reset by its dead-man.
    for start in range(0, len(hosts), session.request.forks):
        some = {host: edits[host] for host in hosts[start : start + session.request.forks]}
        allowed = {host: may_reboot(session, host, asked=reboot) for host in some}
        reports |= _try_some(session, some, outside, claim, allowed)
    return {
        host: report if outside.has_bmc(host) else replace(report, notes=(NO_BMC_WARNING, *report.notes))
        for host, report in reports.items()
    }


def may_reboot(session: Session, host: str, *, asked: bool) -> bool:
    """Whether a host is rebooted; this machine never is, for nobody would be left to judge its boot."""
    return asked and not any(target.local for target in session.pick([host]))


def _try_some(
    session: Session,
    edits: Mapping[str, Mapping[str, Any]],
    outside: Outside,
    claim: Claim,
    allowed: Mapping[str, bool],
) -> dict[str, TrialReport]:
    silent = outside.mark(list(edits))
    reports = {host: _without_way_back(session, host, why) for host, why in silent.items()}
    begun = [host for host in edits if host not in silent]
    for host in begun:
        if allowed[host]:
            _say(
                session,
                host,
                f"trial boot: it has until {_until(session.policy(host).trial.return_s)} to answer",
            )
    claim.begin()
    outcomes = session.fleet.run(
        "trial.yml",
        session.pick(begun),
        phase=PHASE,
        host_vars={host: _variables(session, host, edits[host], claim, allowed[host]) for host in begun},
    )
    claim.hear(outcomes)
    left: dict[str, Outcome] = {}
    for host, outcome in outcomes.items():
        session.record(host, PHASE, outcome.state, error=outcome.error, hint=outcome.hint)
        seen = _seen(outcome)
        if outcome.state == "done" and seen.get("needs_reboot"):
            reports[host] = _report(outcome, "armed")
        elif outcome.state == "done" and seen.get("verdict") == "good":
            reports[host] = _report(outcome, "permanent")
        elif outcome.state != "done" and not seen.get("trial_id"):
            reports[host] = _report(outcome, "refused")
        elif outcome.state != "done":
            left[host] = outcome
    return reports | _fetch_back(session, left, outside, claim, allowed)


def _without_way_back(session: Session, host: str, why: str) -> TrialReport:
    """Refuses a host whose BMC is named and cannot be asked: it would be the way back."""
    words = f"its BMC, the way back from a boot that hangs, cannot be asked: {why}"
    session.record(host, PHASE, "failed", error=words)
    return TrialReport(state="refused", id="", cmdline="", reason=words)


def _say(session: Session, host: str, words: str) -> None:
    session.notify(FleetEvent(host, "progress", words))


def _until(seconds: int) -> str:
    return f"{datetime.now() + timedelta(seconds=seconds):%H:%M:%S}"  # noqa: DTZ005 - for people at this machine


def _fetch_back(
    session: Session,
    tried: Mapping[str, Outcome],
    outside: Outside,
    claim: Claim,
    allowed: Mapping[str, bool],
) -> dict[str, TrialReport]:
    """Brings hosts back to their old arguments: over ssh where they answer, else by BMC or by waiting."""
    boots = {host: f"{MARKER}={_seen(outcome)['trial_id']}" for host, outcome in tried.items()}
    evidence = outside.evidence(boots)
    ends = _recover(session, tried, dict.fromkeys(tried, _UP_S), claim, allowed)
    # The dead-man of a slow node can fire while it is being cleared up: it comes back by itself.
    broken = [
        host for host in tried if ends[host].state == "unreachable" and _seen(ends[host]).get("answered")
    ]
    longer = {host: session.policy(host).trial.return_s for host in broken}
    ends |= _recover(session, tried, longer, claim, allowed)
    reports = {host: _told(tried[host], ends[host], by="controller") for host in tried}
    away = [host for host in tried if _hangs(tried[host], ends[host])]
    # Again, for what they have said since, and before the power goes: afterwards chassis and console tell
    # of the next boot.
    evidence |= outside.evidence({host: boots[host] for host in away})
    for _ in range(_CYCLES):
        obstacles = {host: claim.power_obstacle(host, tried[host]) for host in away if outside.has_bmc(host)}
        power = {host: session.policy(host).trial.power for host, why in obstacles.items() if not why}
        for host, method in power.items():
            _say(session, host, f"does not answer: power {method} through its BMC")
        refused = outside.power_cycle(power)
        waits = {host: _patience_s(session, host, refused) for host in away}
        ends = _recover(session, tried, waits, claim, allowed)
        for host in away:
            by: RecoveredBy = "bmc" if refused.get(host) == "" else "itself"
            reports[host] = _told(tried[host], ends[host], by=by)
            if host in power:
                words = f"power {power[host]} through its BMC, after {_UP_S} s without an answer"
                if refused[host]:
                    words = f"the BMC did not bring the power back: {refused[host]}"
                reports[host] = replace(reports[host], notes=(*reports[host].notes, words))
            elif obstacles.get(host):
                words = f"its power was left alone: {obstacles[host]}"
                reports[host] = replace(reports[host], notes=(*reports[host].notes, words))
        away = [host for host in away if refused.get(host) == "" and ends[host].state != "done"]
    return {
        host: replace(report, evidence=(*evidence.get(host, ()), *report.evidence))
        for host, report in reports.items()
    }


def _hangs(tried: Outcome, cleared: Outcome) -> bool:
    """Whether a node began a reboot and has not answered since. One that answers keeps its power."""
    begun = _seen(tried).get("reboot_begun") or _seen(cleared).get("reboot_begun")
    answered = _seen(cleared).get("answered") and not _seen(cleared).get("reboot_begun")
    # Who refuses a login is up.
    answered = answered or any(words in cleared.error.lower() for words in _REFUSED_LOGINS)
    return cleared.state != "done" and bool(begun) and not answered


def _patience_s(session: Session, host: str, refused: Mapping[str, str]) -> int:
    """How long a host gets to come back; where no BMC helps it, its dead-man has to run out first."""
    trial = session.policy(host).trial
    return trial.return_s + (0 if refused.get(host) == "" else trial.confirm_s)


def _recover(
    session: Session,
    tried: Mapping[str, Outcome],
    wait_s: Mapping[str, int],
    claim: Claim,
    allowed: Mapping[str, bool],
) -> dict[str, Outcome]:
    """Waits for hosts to answer, and takes the trial back there."""
    outcomes = session.fleet.run(
        "recover.yml",
        session.pick(list(wait_s)),
        phase=_RECOVER,
        host_vars={
            host: {
                "nodeprep_trial_wait_s": seconds,
                "nodeprep_trial_return_s": session.policy(host).trial.return_s,
                "nodeprep_trial_reboot": allowed[host],
                "nodeprep_trial_owner": claim.owner(host),
                # What is late had its time when the boot was judged bad.
                "nodeprep_trial_settle_s": 0 if _seen(tried[host]).get("verdict") == "bad" else _SETTLE_S,
            }
            for host, seconds in wait_s.items()
        },
    )
    claim.hear(outcomes)
    for host, outcome in outcomes.items():
        session.record(host, _RECOVER, outcome.state, error=outcome.error, hint=outcome.hint)
    return outcomes


def _variables(
    session: Session, host: str, edit: Mapping[str, Any], claim: Claim, reboot: bool
) -> dict[str, Any]:
    trial = session.policy(host).trial
    return {
        "nodeprep_kernel_args": dict(edit),
        "nodeprep_trial_reboot": reboot,
        "nodeprep_trial_return_s": trial.return_s,
        "nodeprep_trial_confirm_s": trial.confirm_s,
        "nodeprep_trial_owner": claim.owner(host),
    }


def _told(tried: Outcome, cleared: Outcome, *, by: RecoveredBy) -> TrialReport:
    """The report of a host whose trial did not end well.

    Args:
        tried: How the trial's play ended.
        cleared: How the play that takes it back ended; it judged the trial once more, from afterwards.
        by: Who brought the node back, if it is back.
    """
    before, after = _seen(tried), _seen(cleared)
    seen = {**before, **{name: value for name, value in after.items() if value or name not in before}}
    if before.get("verdict") == "bad":
        # It was seen while it ran; afterwards one only sees that it runs no more.
        seen["findings"] = before["findings"]
    merged = replace(tried, data={_RESULTS: seen})
    if cleared.state != "done":
        lost = _hangs(tried, cleared)
        return replace(
            _report(merged, "lost" if lost else "unsettled"),
            reason=f"{tried.error}; {cleared.error}",
        )
    if after.get("outcome") == "committed" and after.get("trial_id") == before.get("trial_id"):
        words = f"it was permanent before the connection broke ({tried.error})"
        return replace(_report(merged, "permanent"), notes=(words,))
    report = _report(merged, "rolled_back")
    if after.get("needs_reboot") and not after.get("reboot_begun"):
        words = "this boot is still the trial; a reboot brings the old arguments"
        return replace(report, notes=(*report.notes, words))
    gone = after if after.get("verdict") else before
    if not before.get("reboot_begun"):
        words = "it was the trial of an earlier run, which is cleared away now; apply again to try it anew"
        report = replace(report, notes=(*report.notes, words))
    alone = by == "controller" and gone.get("verdict") == "not_booted" and bool(gone.get("rebooted"))
    went = bool(seen.get("reboot_begun"))
    return replace(report, recovered_by="itself" if alone else by if went else "")


def _seen(outcome: Outcome) -> Mapping[str, Any]:
    """What the node said of its trial; empty when it said nothing."""
    found: Mapping[str, Any] = outcome.data.get(_RESULTS) or {}
    return found


def _report(outcome: Outcome, state: TrialState) -> TrialReport:
    seen = _seen(outcome)
    return TrialReport(
        state=state,
        id=str(seen.get("trial_id", "")),
        cmdline=str(seen.get("cmdline", "")),
        reason="" if state in ("permanent", "armed") else outcome.error,
        reboot_s=seen.get("reboot_s"),
        findings=tuple(_findings(seen.get("findings", ()))),
        evidence=tuple(_from_node(seen.get("evidence", {}))),
        notes=tuple(map(str, seen.get("notes", ()))),
    )


def _findings(found: Sequence[Mapping[str, Any]]) -> Iterator[TrialFinding]:
    for one in found:
        yield TrialFinding(
            what=str(one.get("what", "")), before=str(one.get("before", "")), now=str(one.get("now", ""))
        )


def _from_node(evidence: Mapping[str, Any]) -> Iterator[TrialEvidence]:
    """What the node itself kept of the boot that failed."""
    lines, note = evidence.get("kernel_log") or (), str(evidence.get("kernel_log_note") or "")
    if lines:
        yield TrialEvidence(source="journal", state="ok", text="\n".join(filter(None, [*lines, note])))
    elif note:
        yield TrialEvidence(source="journal", state="error", text=note)
    if evidence.get("crash_files"):
        files = "\n".join(map(str, evidence["crash_files"]))
        yield TrialEvidence(source="pstore", state="ok", text=files)
