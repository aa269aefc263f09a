"""Diagnose: from logs and counters, or from live nodes, to incidents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from nodeprep.bmc import LogMark, read_access
from nodeprep.bmc.target import VARIABLE as BMC_VARIABLE
from nodeprep.diagnose.engine import Progress, diagnose
from nodeprep.diagnose.inputs import Input, find_inputs
from nodeprep.fleet import Outcome, bmc_passwords
from nodeprep.model.diagnosis import Diagnosis
from nodeprep.workflows.diagnose_cursor import Cursor, continued, cursor_of, load_cursors, path_of
from nodeprep.workflows.event_logs import EVENT_LOG, read_event_logs
from nodeprep.workflows.session import Session

__all__ = ["EVENT_LOG", "diagnose_files", "diagnose_hosts"]


def diagnose_files(paths: Sequence[str], *, progress: Progress | None = None) -> Diagnosis:
    """Incidents of one node's logs and saved outputs.

    Raises:
        UsageError: A path does not exist.
    """
    return diagnose(find_inputs(paths), progress=progress)


def diagnose_hosts(session: Session, *, since: Path | None = None) -> dict[str, Diagnosis]:
    """Incidents of live nodes; what was read stays in the run folder, under evidence/.

    Args:
        since: Run folder of an earlier diagnosis: of logs only what came after it is looked at. A host that
            was not in it is looked at as a whole.

    Returns:
        By host. A host without an answer has its reason in the session's ledger, and is among them only
        when its BMC answered.

    Raises:
        UsageError: `since` is no such folder.
        PolicyError: What the inventory says about BMCs does not hold together.
    """
    hosts = [target.host for target in session.targets]
    cursors = load_cursors(since, hosts) if since is not None else {}
    folder = session.run_dir / "evidence"
    # Kernel logs: for the eyes of whoever ran this.
    folder.mkdir(mode=0o700, exist_ok=True)
    managed = {t.host: t for t in session.targets if BMC_VARIABLE in t.variables}
    ways = read_access(
        {host: target.variables for host, target in managed.items()},
        passwords=bmc_passwords(managed.values()),
    )
    outcomes = session.fleet.run(
        "diagnose.yml",
        session.targets,
        phase="diagnose",
        extra_vars={"nodeprep_run_dir": str(session.run_dir)},
        host_vars={host: {"nodeprep_since": one.log} for host, one in cursors.items() if one.log is not None},
    )
    logs = read_event_logs(
        {host: way.bmc for host, way in ways.items() if way.bmc is not None}, _marks(cursors)
    )
    found: dict[str, Diagnosis] = {}
    for host, outcome in outcomes.items():
        session.record(host, "diagnose", outcome.state, error=outcome.error, hint=outcome.hint)
        inputs = _inputs(folder, outcome, cursors.get(host))
        log = logs.get(host)
        if outcome.state != "done" and (log is None or log.input.unreadable):
            continue
        mark = log.mark if log is not None else None
        found[host] = diagnose([*inputs, *([log.input] if log is not None else [])])
        session.save(f"diagnosis/{host}.json", found[host])
        session.save(path_of(host), cursor_of(inputs, mark, cursors.get(host)))
    return found


def _marks(cursors: Mapping[str, Cursor]) -> dict[str, LogMark]:
    return {host: one.event_log for host, one in cursors.items() if one.event_log is not None}


def _inputs(folder: Path, outcome: Outcome, cursor: Cursor | None) -> list[Input]:
    """What was brought home of a node; of one that did not answer, that it did not."""
    archive = folder / f"{outcome.host}.tar.gz"
    if outcome.state != "done":
        why = f"the node gave no answer: {outcome.error or outcome.state}"
        return [Input(name=archive.name, open=lambda: archive.open("rb"), unreadable=why)]
    inputs = [
        replace(each, name=each.name.removeprefix(f"{folder}/")) for each in find_inputs([str(archive)])
    ]
    return inputs if cursor is None else list(continued(inputs, cursor))
