"""The ledger of a run: what is known about every requested host, on disk before anything else happens."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from nodeprep.errors import NodeprepError
from nodeprep.fleet.disk import write_durably
from nodeprep.model.codec import decode, encode_pretty
from nodeprep.model.run import HostRecord, HostState, Run

FILE = "run.json"


class Ledger:
    """run.json in the run folder. Every change is on the disk when the call returns.

    A host begins as "unknown" and only an explicit record moves it, so a controller that dies
    leaves behind what it knew and nothing it hoped for. Not safe for use from several threads.
    """

    def __init__(self, run_dir: Path, run: Run) -> None:
        self._path = run_dir / FILE
        self._run = run
        self._hosts = {record.host: record for record in run.hosts}

    @classmethod
    def create(cls, run_dir: Path, run: Run, hosts: Iterable[str]) -> Ledger:
        """A new ledger with every host unknown, written at once.

        Raises:
            NodeprepError: The folder cannot be written.
        """
        ledger = cls(run_dir, replace(run, hosts=tuple(HostRecord(host=host) for host in hosts)))
        ledger._write()
        return ledger

    @classmethod
    def open(cls, run_dir: Path) -> Ledger:
        """The ledger of an earlier run.

        Raises:
            DocumentError: run.json is damaged.
            NodeprepError: It cannot be read.
        """
        path = run_dir / FILE
        try:
            data = path.read_bytes()
        except OSError as error:
            raise NodeprepError(
                f"cannot read {path}: {error.strerror}", hint="name the folder of a run"
            ) from error
        return cls(run_dir, decode(data, Run, source=str(path)))

    @property
    def hosts(self) -> Mapping[str, HostRecord]:
        """Every requested host's record, in the order they were requested."""
        return dict(self._hosts)

    def record(self, host: str, phase: str, state: HostState, *, error: str = "", hint: str = "") -> None:
        """Notes how a phase ended (or that it began, as "running") for one host.

        The host's own state becomes that of this phase; a phase that went well clears the error
        of an earlier one only when it says so by passing none.

        Raises:
            KeyError: The host is none of this run's.
            NodeprepError: The disk is full or gone.
        """
        old = self._hosts[host]
        phases = {name: known for name, known in old.phases.items() if name != phase} | {phase: state}
        self._hosts[host] = replace(old, state=state, phases=phases, error=error, hint=hint)
        self._write()

    def describe(
        self, *, level: str | None = None, workload: str | None = None, simulated: bool | None = None
    ) -> None:
        """Fills in what is known about the run as a whole; None leaves a field as it is."""
        if level is not None:
            self._run = replace(self._run, level=level)
        if workload is not None:
            self._run = replace(self._run, workload=workload)
        if simulated is not None:
            self._run = replace(self._run, simulated=simulated)
        self._write()

    def snapshot(self, *, ended_at: str | None = None) -> Run:
        """The run as it stands; `ended_at` (ISO 8601) fills that field in the copy only."""
        run = replace(self._run, hosts=tuple(self._hosts.values()))
        return run if ended_at is None else replace(run, ended_at=ended_at)

    def close(self, *, ended_at: str) -> None:
        """Notes when the run ended."""
        self._run = replace(self._run, ended_at=ended_at)
        self._write()

    def _write(self) -> None:
        write_durably(self._path, encode_pretty(self.snapshot()))
