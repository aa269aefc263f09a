"""Trial boot: new kernel arguments are booted once, judged, and only then made permanent.

The node's own state machine (nodeprep/node/trial.py) decides whether a boot was good and what becomes
permanent; here the reboot is waited for, and a node that does not come back is fetched back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from nodeprep.fleet import Outcome
from nodeprep.model.trial import TrialEvidence, TrialFinding, TrialReport, TrialState
from nodeprep.node.trial_words import MARKER
from nodeprep.workflows.outside import NO_BMC_WARNING, Outside
from nodeprep.workflows.session import Session

PHASE = "trial"
_RECOVER = "recover"
# A node that is up answers within this time; one that hangs is then left to its BMC.
_UP_S = 60
_RESULTS = "kernel_args"


def try_boot(
    session: Session, edits: Mapping[str, Mapping[str, Any]], outside: Outside, *, reboot: bool = True
) -> dict[str, TrialReport]:
    """Tries the kernel arguments of some hosts; every host has a report.

    Args:
        edits: By host, what the module `kernel_args` is given.
        outside: BMCs and console logs of these hosts.
        reboot: False leaves the next boot, whoever causes it, to be the trial.
    """
    if not edits:
        return {}
    outside.mark(list(edits))
    outcomes = session.fleet.run(
        "trial.yml",
        session.pick(list(edits)),
        phase=PHASE,
        host_vars={
            host: _variables(session, host, edit, may_reboot(session, host, asked=reboot))
            for host, edit in edits.items()
        },
    )
    reports: dict[str, TrialReport] = {}
    for host, outcome in outcomes.items():
        session.record(host, PHASE, outcome.state, error=outcome.error, hint=outcome.hint)
        if outcome.state == "done":
            waits = outcome.data.get(_RESULTS, {}).get("needs_reboot")
            reports[host] = _report(outcome, "armed" if waits else "permanent")
        elif _RESULTS not in outcome.data:
            reports[host] = _report(outcome, "refused")
    left = {host: outcome for host, outcome in outcomes.items() if host not in reports}
    reports |= _fetch_back(session, left, outside)
    warned = {host: () if outside.has_bmc(host) else (NO_BMC_WARNING,) for host in edits}
    return {host: replace(reports[host], notes=(*warned[host], *reports[host].notes)) for host in edits}


def may_reboot(session: Session, host: str, *, asked: bool) -> bool:
    """Whether a host is rebooted; this machine never is, for nobody would be left to judge its boot."""
    return asked and not any(target.local for target in session.pick([host]))


def _fetch_back(session: Session, lost: Mapping[str, Outcome], outside: Outside) -> dict[str, TrialReport]:
    """Brings hosts back to their old arguments: over ssh where they answer, else by BMC or by waiting."""
    boots = {host: f"{MARKER}={outcome.data[_RESULTS].get('trial_id', '')}" for host, outcome in lost.items()}
    evidence = outside.evidence(boots)
    near = _recover(session, dict.fromkeys(lost, _UP_S))
    reports = {
        host: _rolled_back(lost[host], cleared, by="controller")
        for host, cleared in near.items()
        if cleared.state == "done"
    }
    away = [host for host in lost if host not in reports]
    # Again, for what they have said since, and before the power goes: afterwards chassis and console tell of
    # the next boot.
    evidence |= outside.evidence({host: boots[host] for host in away})
    power = {host: session.policy(host).trial.power for host in away if outside.has_bmc(host)}
    refused = outside.power_cycle(power)
    far = _recover(session, {host: _patience_s(session, host, refused) for host in away})
    for host, cleared in far.items():
        report = (
            _rolled_back(lost[host], cleared, by="bmc" if refused.get(host) == "" else "itself")
            if cleared.state == "done"
            else _report(lost[host], "lost")
        )
        notes = report.notes
        if refused.get(host):
            notes += (f"the BMC did not bring the power back: {refused[host]}",)
        reports[host] = replace(report, notes=notes)
    return {
        host: replace(report, evidence=(*evidence.get(host, ()), *report.evidence))
        for host, report in reports.items()
    }


def _patience_s(session: Session, host: str, refused: Mapping[str, str]) -> int:
    """How long a host gets to come back; where no BMC helps it, its dead-man has to run out first."""
    trial = session.policy(host).trial
    return trial.return_s + (0 if refused.get(host) == "" else trial.confirm_s)


def _recover(session: Session, wait_s: Mapping[str, int]) -> dict[str, Outcome]:
    """Waits for hosts to answer, and takes the trial back there."""
    outcomes = session.fleet.run(
        "recover.yml",
        session.pick(list(wait_s)),
        phase=_RECOVER,
        host_vars={
            host: {
                "nodeprep_trial_wait_s": seconds,
                "nodeprep_trial_return_s": session.policy(host).trial.return_s,
            }
            for host, seconds in wait_s.items()
        },
    )
    for host, outcome in outcomes.items():
        session.record(host, _RECOVER, outcome.state, error=outcome.error, hint=outcome.hint)
    return outcomes


def _variables(session: Session, host: str, edit: Mapping[str, Any], reboot: bool) -> dict[str, Any]:
    trial = session.policy(host).trial
    return {
        "nodeprep_kernel_args": dict(edit),
        "nodeprep_trial_reboot": reboot,
        "nodeprep_trial_return_s": trial.return_s,
        "nodeprep_trial_confirm_s": trial.confirm_s,
    }


def _rolled_back(
    tried: Outcome, cleared: Outcome, *, by: Literal["itself", "controller", "bmc"]
) -> TrialReport:
    """The report of a host that runs on its old arguments again.

    Args:
        tried: How the trial's play ended.
        cleared: How the play that took it back ended; it judged the trial once more, from afterwards.
        by: Who brought the node back; a node that was up again on its old arguments did so itself.
    """
    first, then = tried.data.get(_RESULTS, {}), cleared.data.get(_RESULTS, {})
    seen = {**first, **{name: value for name, value in then.items() if value or name not in first}}
    if first.get("verdict") == "bad":
        # It was seen while it ran; afterwards one only sees that it runs no more.
        seen["findings"] = first["findings"]
    gone = (then if then.get("verdict") else first).get
    alone = by == "controller" and gone("verdict") == "not_booted" and bool(gone("rebooted"))
    report = _report(replace(tried, data={_RESULTS: seen}), "rolled_back")
    return replace(report, recovered_by="itself" if alone else by)


def _report(outcome: Outcome, state: TrialState) -> TrialReport:
    seen: Mapping[str, Any] = outcome.data.get(_RESULTS, {})
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
    """What the node itself kept of the boot that failed, such as the journal's last lines."""
    for source, text in evidence.items():
        lines = text if isinstance(text, list) else [text]
        if any(lines):
            yield TrialEvidence(source=str(source), state="ok", text="\n".join(map(str, lines)))
