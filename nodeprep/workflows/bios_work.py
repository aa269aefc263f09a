"""One run that changes the BIOS of one machine: its folder, its restore point, and what it did."""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

import nodeprep
from nodeprep.bmc.bios.state import obstacle
from nodeprep.bmc.bios.vendor import vendor_of
from nodeprep.bmc.bios.wanted import Wanted
from nodeprep.bmc.failures import BmcUnreachable
from nodeprep.bmc.redfish.apply import DEADLINE_S, Applier, Options, Result
from nodeprep.bmc.redfish.bios import BiosSettings
from nodeprep.bmc.redfish.calm import POST_S
from nodeprep.bmc.redfish.connection import Connection
from nodeprep.bmc.redfish.errors import RedfishError
from nodeprep.bmc.redfish.jobs import open_jobs
from nodeprep.bmc.redfish.patience import Clock
from nodeprep.bmc.redfish.reading import BiosReading, read_again
from nodeprep.bmc.redfish.reset import GRACEFUL_S
from nodeprep.bmc.target import BmcTarget
from nodeprep.errors import Inconclusive, NodeprepError
from nodeprep.fleet import Ledger
from nodeprep.fleet.disk import DiskError, explained
from nodeprep.model.bios import BiosApplication, BiosPlan, BiosValue
from nodeprep.model.bios_restore import RestorePoint
from nodeprep.model.codec import encode_pretty
from nodeprep.model.run import Run
from nodeprep.workflows.bios import NoBios, is_simulated, look, plan_of, readable
from nodeprep.workflows.bios_outcomes import Seen, first_trouble
from nodeprep.workflows.bios_own import is_own
from nodeprep.workflows.bios_restore import (
    FILE,
    RestoreStore,
    continued,
    serial_of,
)
from nodeprep.workflows.home import Home

DOCUMENT, EVENTS = "bios_apply.json", "events.jsonl"
_PRIVATE = 0o600
# Source: dsx-ai-factory/infra-controller#505: the BMC told one thing, and the host ran with another.
BMC_ONLY = (
    "that this is in effect is the BMC's word: what the host runs with is to be seen on the host "
    "(nodeprep verify)"
)
_WAY_BACK = (
    "values are staged in the BMC, or in effect: `nodeprep rollback` (for one BMC `nodeprep bios rollback "
    "--bmc URL`) takes them back"
)

Notify = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked of a change.

    Attributes:
        reset: Restart the host; without it the values stay staged.
        deadline_s: For each reset, until the values are in effect.
        bios_password: Setup password of the BIOS.
    """

    target: BmcTarget
    reset: bool = True
    deadline_s: float = DEADLINE_S
    graceful_s: float = GRACEFUL_S
    bios_password: str = field(default="", repr=False)


class Work:
    """One run: its folder, its restore point, and what it does to one BMC."""

    def __init__(
        self,
        asked: Asked,
        connection: Connection,
        found: BiosReading,
        home: Home,
        *,
        notify: Notify,
        clock: Clock,
        verb: str,
    ) -> None:
        self._asked = asked
        self._connection = connection
        self._found = found
        self._tell = notify
        self._clock = clock
        self._verb = verb
        self._host = asked.target.host
        self._store = RestoreStore(home, asked.target, serial_of(found.service))
        self._id = f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{verb}-{secrets.token_hex(2)}"
        self.folder = home.runs / self._id
        self._last: BiosSettings | None = found.settings
        self._notes: list[str] = []
        self._point: RestorePoint | None = None
        self._source: Path | None = None
        self._earlier: Path | None = None
        self._result: Result | None = None
        self._untouched = False
        self._ledger: Ledger | None = None

    @contextmanager
    def opened(self, point: RestorePoint | None = None, source: Path | None = None) -> Iterator[None]:
        """The run folder, and the BMC for this run alone.

        Args:
            point: The restore point that is being taken back; the run then makes none of its own.
            source: Its file, where a later run goes on from it.
        """
        with self._store.locked(), self._way_back_told(), explained(self.folder):
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._point, self._source = point, source
            self._ledger = Ledger.create(
                self.folder,
                Run(
                    id=self._id,
                    verb=self._verb,
                    started_at=_now(),
                    ended_at="",
                    hosts=(),
                    nodeprep_version=nodeprep.__version__,
                    simulated=is_simulated(self._found.service),
                ),
                [self._host],
            )
            self._ledger.record(self._host, self._verb, "running")
            try:
                yield
            except NodeprepError as error:
                self._ledger.record(self._host, self._verb, "failed", error=error.message, hint=error.hint)
                raise
            finally:
                self._ledger.close(ended_at=_now())

    def apply(self, steps: Sequence[Mapping[str, BiosValue]]) -> Result:
        """Writes the restore point, then the steps."""
        planned = {name: value for step in steps for name, value in step.items()}
        earlier = self._store.last()
        self._earlier = earlier[0] if earlier is not None else None
        unfinished = earlier[1] if earlier is not None and not earlier[1].finished else None
        point = continued(
            RestorePoint(
                bmc=self._found.machine,
                address=self._store.address,
                serial=self._store.serial,
                taken_at=_now(),
                values=dict(self._found.settings.current),
                planned=planned,
            ),
            unfinished,
        )
        self._keep(point)
        self.notify(f"restore point: {self.folder / FILE}")
        if unfinished is not None:
            self._notes.append(
                f"an earlier run of {unfinished.taken_at} did not end: its restore point was taken over"
            )
        return self._run(steps, unfinished.reset_at if unfinished is not None else 0.0)

    def switch_on(self) -> Result:
        """Ends the reset of an earlier run that left the host off, where nothing is to be written."""
        last = self._store.last()
        if last is None or last[1].finished:
            return Result()
        self._keep(last[1])
        return self._run((), last[1].reset_at)

    def steps_back(self, point: RestorePoint) -> list[dict[str, BiosValue]]:
        """The values to write, in the order in which they can be written."""
        found, settings, view = self._found, self._found.settings, self._found.view
        back = {name: value for name, value in point.to_restore().items() if name in settings.current}
        differing = {
            name: value
            for name, value in back.items()
            if settings.current[name] != value or name in settings.pending
        }
        presets = vendor_of(self._found.machine.vendor).presets
        before: dict[str, BiosValue] = {}
        together: dict[str, BiosValue] = {}
        later: dict[str, BiosValue] = {}
        for name, value in differing.items():
            others = {other: one for other, one in differing.items() if other != name}
            entry = found.registry.attributes.get(name)
            hindrance = obstacle(view, entry, others, presets) if entry is not None else None
            if hindrance is None or entry is None:
                together[name] = value
            elif obstacle(view, entry, {}, presets) is None:
                # The others lock it, as they did before nodeprep unlocked it.
                before[name] = value
            elif name in point.planned or hindrance.second_phase:
                later[name] = value
            else:
                self._notes.append(f"{name} is left at {settings.current[name]}: {hindrance.reason}")
        return [step for step in (before, together, later) if step]

    def undo(self, point: RestorePoint, steps: Sequence[Mapping[str, BiosValue]]) -> Result:
        """Takes back nodeprep's own job, if it still waits, and writes the steps."""
        reset_at = point.reset_at if not point.finished else 0.0
        if not steps:
            return self._run((), reset_at)
        for job in open_jobs(self._connection, self._found.service) or ():
            if is_own(job, point, self._found.settings) and not job.runs:
                self.notify(f"deleting nodeprep's own job {job}")
                self._connection.delete(job.uri)
                self._notes.append(f"nodeprep's own job {job.id}, which had not run, was deleted")
                self._found = read_again(self._connection, self._found)
        return self._run(steps, reset_at)

    @property
    def settings(self) -> BiosSettings:
        """As last read."""
        return self._last or self._found.settings

    def plan_again(self, wanted: Mapping[str, Wanted]) -> BiosPlan | None:
        """The plan over the BIOS as it is at the end; None when it cannot be read."""
        try:
            with readable():
                found = look(self._connection)
                if isinstance(found, NoBios):
                    return None
                self._last = found.settings
                return plan_of(self._connection, found, wanted, self._point)
        except (Inconclusive, BmcUnreachable) as error:
            self._notes.append(f"the BIOS could not be read at the end: {error.message}")
            self._last = None
            return None

    def document(
        self,
        before: BiosPlan,
        after: BiosPlan | None,
        done: Result,
        steps: Sequence[Mapping[str, BiosValue]],
        knob_of: Mapping[str, str],
    ) -> BiosApplication:
        """What happened."""
        if after is None and self._last is not None:
            self._read_back()
        found = self._found
        seen = Seen(found.machine.vendor, found.settings, self._last, done, self._asked.reset)
        self._untouched = self._verb == "bios_apply" and seen.changed_nothing()
        outcomes = seen.outcomes(steps, knob_of)
        point = self._point
        known = dict(point.values) if point is not None else {}
        to_take_back = () if self._untouched else outcomes
        state = seen.state(outcomes)
        if state in ("applied", "partial"):
            self._notes.append(BMC_ONLY)
        return BiosApplication(
            bmc=before.bmc,
            state=state,
            before=before,
            after=after,
            outcomes=outcomes,
            restore_point={one.name: known.get(one.name, one.before) for one in to_take_back},
            job=done.jobs[-1] if done.jobs else "",
            resets=done.restarts,
            error=done.error or first_trouble(outcomes),
            hint=done.hint,
            notes=(*before.notes, *self._notes, *done.notes),
            simulated=before.simulated,
            tls=before.tls,
            restore_file=str(self.folder / FILE) if point is not None and not self._untouched else "",
        )

    def close(self, document: BiosApplication) -> None:
        """Writes down how it ended."""
        _write_private(self.folder / DOCUMENT, encode_pretty(document))
        point = self._point
        if point is not None and self._untouched:
            # What an administrator changes from now on is no later roll-back's to take back.
            values = dict(self._found.settings.current)
            ended = replace(
                point, values=values, planned={}, after=values, jobs=(), finished=True, reset_at=0.0
            )
            self._store.withdraw(self.folder / FILE, ended, self._earlier)
        elif point is not None and self._verb == "bios_apply":
            finished = document.state == "applied"
            after = dict(self._last.current) if self._last is not None and finished else {}
            jobs = tuple(dict.fromkeys((*point.jobs, *([document.job] if document.job else []))))
            self._keep(replace(point, finished=finished, after=after, jobs=jobs))
        assert self._ledger is not None  # noqa: S101
        good = document.state in ("applied", "unchanged", "staged")
        self._ledger.record(
            self._host,
            self._verb,
            "done" if good else "failed",
            error="" if good else document.error,
            hint="" if good else document.hint,
        )

    def notify(self, message: str) -> None:
        """One stage, to the user and into the run folder."""
        line = json.dumps({"time": _now(), "message": message}, ensure_ascii=False)
        path = self.folder / EVENTS
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, _PRIVATE)
        with os.fdopen(descriptor, "a", encoding="utf-8") as file:
            file.write(line + "\n")
        self._tell(message)

    def _run(self, steps: Sequence[Mapping[str, BiosValue]], reset_at: float) -> Result:
        age = time.time() - reset_at
        applier = Applier(
            self._connection,
            self._found,
            steps,
            Options(
                reset=self._asked.reset,
                deadline_s=self._asked.deadline_s,
                graceful_s=self._asked.graceful_s,
                young_reset_s=age if 0 <= age < POST_S else None,
                begun_reset=reset_at > 0,
                bios_password=self._asked.bios_password,
            ),
            clock=self._clock,
            notify=self.notify,
            on_reset=self._note_reset,
            on_job=self._note_job,
        )
        self._result = applier.result
        return applier.run()

    @contextmanager
    def _way_back_told(self) -> Iterator[None]:
        """A full disk breaks the run off; what the BMC has by then waits for any reset."""
        try:
            yield
        except DiskError as error:
            sent = self._result is not None and self._result.sent
            if self._verb != "bios_apply" or not sent or self._untouched:
                raise
            raise DiskError(error.message, hint=f"{error.hint}; {_WAY_BACK}") from error

    def _note_reset(self) -> None:
        if self._point is None:
            return
        if self._verb == "bios_apply":
            self._keep(replace(self._point, reset_at=time.time()))
        elif self._source is not None:
            self._point = replace(self._point, finished=False, reset_at=time.time())
            self._store.write(self._source, self._point)

    def _note_job(self, uri: str) -> None:
        if self._point is not None and self._verb == "bios_apply":
            jobs = tuple(dict.fromkeys((*self._point.jobs, uri)))
            self._keep(replace(self._point, jobs=jobs))

    def _keep(self, point: RestorePoint) -> None:
        self._point = point
        self._store.write(self.folder / FILE, point)

    def _read_back(self) -> None:
        try:
            self._last = read_again(self._connection, self._found).settings
        except (RedfishError, BmcUnreachable) as error:
            self._notes.append(f"the BIOS could not be read at the end: {error.message}")
            self._last = None


def _write_private(path: Path, data: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, _PRIVATE)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
