"""Diagnose: from logs and counters, or from live nodes, to incidents."""

from __future__ import annotations

import io
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, BinaryIO, cast

from nodeprep.bmc import BmcTarget, LogEntry, LogMark, LogNews, connect, for_all, read_access
from nodeprep.bmc.event_log import LogPlace
from nodeprep.bmc.target import VARIABLE as BMC_VARIABLE
from nodeprep.diagnose.engine import Progress, diagnose
from nodeprep.diagnose.inputs import Input, find_inputs
from nodeprep.errors import NodeprepError
from nodeprep.model.diagnosis import Diagnosis
from nodeprep.workflows.session import Session

EVENT_LOG = "bmc-event-log.txt"


def diagnose_files(paths: Sequence[str], *, progress: Progress | None = None) -> Diagnosis:
    """Incidents of one node's logs and saved outputs.

    Raises:
        UsageError: A path does not exist.
    """
    return diagnose(find_inputs(paths), progress=progress)


def diagnose_hosts(session: Session, *, since: Mapping[str, Any] | None = None) -> dict[str, Diagnosis]:
    """Incidents of live nodes; what was read stays in the run folder, under evidence/.

    Args:
        since: By host, the log cursor of earlier facts: only later kernel messages are looked at.

    Returns:
        By host; a host without an answer has its reason in the session's ledger.

    Raises:
        PolicyError: What the inventory says about BMCs does not hold together.
    """
    folder = session.run_dir / "evidence"
    # Kernel logs: for the eyes of whoever ran this.
    folder.mkdir(mode=0o700, exist_ok=True)
    ways = read_access({t.host: t.variables for t in session.targets if BMC_VARIABLE in t.variables})
    outcomes = session.fleet.run(
        "diagnose.yml",
        session.targets,
        phase="diagnose",
        extra_vars={"nodeprep_run_dir": str(session.run_dir)},
        host_vars={host: {"nodeprep_since": cursor} for host, cursor in (since or {}).items()},
    )
    logs = _event_logs({host: way.bmc for host, way in ways.items() if way.bmc is not None})
    found: dict[str, Diagnosis] = {}
    for host, outcome in outcomes.items():
        session.record(host, "diagnose", outcome.state, error=outcome.error, hint=outcome.hint)
        if outcome.state != "done":
            continue
        inputs = list(find_inputs([str(folder / f"{host}.tar.gz")]))
        inputs = [replace(each, name=each.name.removeprefix(f"{folder}/")) for each in inputs]
        if host in logs:
            inputs.append(logs[host])
        found[host] = diagnose(inputs)
        session.save(f"diagnosis/{host}.json", found[host])
    return found


def _event_logs(targets: Mapping[str, BmcTarget]) -> dict[str, Input]:
    """The BMCs' event logs as inputs; one that cannot be read is an input that cannot be read."""
    answers = for_all(targets, _event_log)
    return {host: _as_input(answer) for host, answer in answers.items()}


def _event_log(target: BmcTarget, cancelled: threading.Event) -> LogNews:
    with connect(target, cancelled=cancelled) as bmc:
        # From the first entry on, and no log that was cleared before now has lost anything of ours.
        now = bmc.log_mark()
        whole = {log: LogPlace({}) for log in now.logs}
        return bmc.log_since(LogMark(last="", content="", erased_at=now.erased_at, logs=whole))


def _as_input(answer: LogNews | NodeprepError) -> Input:
    if isinstance(answer, NodeprepError):
        return Input(name=EVENT_LOG, open=io.BytesIO, unreadable=answer.message)
    text = "".join(f"{_as_line(entry)}\n" for entry in answer.entries) or "the event log has no entries\n"
    raw = text.encode()
    return Input(
        name=EVENT_LOG,
        open=lambda: cast(BinaryIO, io.BytesIO(raw)),
        size_bytes=len(raw),
        gap=answer.note,
    )


def _as_line(entry: LogEntry) -> str:
    """An entry as `ipmitool sel elist` would print it, so that one reader knows both."""
    sensor, _, event = entry.text.partition(": ")
    direction = "Deasserted" if "(deasserted" in event else "Asserted"
    return f"{entry.time or 'no time'} | {sensor} | {event} | {direction}"
