"""Run folders read back: what a report, `watch` or a later look needs."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from nodeprep.certify.statement import read_unverified
from nodeprep.errors import UsageError
from nodeprep.model.certificate import Certificate
from nodeprep.model.codec import decode
from nodeprep.model.facts import NodeFacts
from nodeprep.model.plan import Plan
from nodeprep.model.probe import ProbeResult
from nodeprep.model.run import HostRecord, NodeView, Run, RunView, TelemetrySeries
from nodeprep.workflows.home import Home

T = TypeVar("T")


def load_view(run_dir: Path) -> RunView:
    """Everything a run folder holds about every requested host.

    Raises:
        UsageError: It is no run folder.
        DocumentError: A document in it is damaged.
    """
    file = run_dir / "run.json"
    try:
        run = decode(file.read_bytes(), Run, source=str(file))
    except OSError as error:
        raise UsageError(
            f"{run_dir} is not a run folder: {error.strerror}: run.json",
            hint="runs are folders under NODEPREP_HOME/runs, or what -o named",
        ) from error
    return RunView(run=run, nodes=tuple(_node(run_dir, record) for record in run.hosts))


def find_run(home: Home, name: str | None) -> Path:
    """The folder of a run by path or id; the newest when no name is given.

    Raises:
        UsageError: There is no such run.
    """
    if name is not None:
        for candidate in (Path(name), home.runs / name):
            if (candidate / "run.json").is_file():
                return candidate
        raise UsageError(f"no run {name!r}", hint=f"runs are in {home.runs}")
    runs = sorted(path.parent for path in home.runs.glob("*/run.json"))
    if not runs:
        raise UsageError(f"no runs in {home.runs}", hint="name a run folder")
    return runs[-1]


def _node(run_dir: Path, record: HostRecord) -> NodeView:
    host = record.host
    certificate, key_id = _certificate(run_dir / "certificates" / f"{host}.json")
    probe_dir = run_dir / "probe" / host
    series = (_optional(path, TelemetrySeries) for path in sorted(probe_dir.glob("telemetry-*.json")))
    return NodeView(
        record=record,
        facts_before=_optional(run_dir / "facts" / f"{host}.before.json", NodeFacts)
        or _optional(run_dir / "facts" / f"{host}.now.json", NodeFacts),
        facts_after=_optional(run_dir / "facts" / f"{host}.after.json", NodeFacts),
        plan=_optional(run_dir / "plan" / f"{host}.json", Plan),
        probe=_optional(probe_dir / "result.json", ProbeResult),
        telemetry=tuple(each for each in series if each is not None),
        certificate=certificate,
        key_id=key_id,
    )


def _optional(path: Path, kind: type[T]) -> T | None:
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    return decode(data, kind, source=str(path))


def _certificate(path: Path) -> tuple[Certificate | None, str]:
    """The run's own folder is being shown, so the signature is not asked about."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None, ""
    return read_unverified(data, source=str(path))
