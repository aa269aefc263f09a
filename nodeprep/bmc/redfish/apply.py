"""Brings BIOS settings into effect: stage, reset, wait, read back, in as many steps as they need.

Every request may be the last one of this process. What it leaves is read from the BMC by the next run:
staged values, an open job, a host that is off or in POST. So each step looks first, and does only what is
still to be done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from nodeprep.bmc.failures import BmcUnreachable
from nodeprep.bmc.redfish.bios import BiosSettings, Scalar
from nodeprep.bmc.redfish.blocks import blocks_change, in_the_way
from nodeprep.bmc.redfish.calm import unrest
from nodeprep.bmc.redfish.connection import Connection
from nodeprep.bmc.redfish.errors import PreconditionFailed, RedfishError
from nodeprep.bmc.redfish.jobs import Job, create_job, has_queue, open_jobs, read_job
from nodeprep.bmc.redfish.patience import Clock
from nodeprep.bmc.redfish.post import POLL_S, Watch, power_now, wanted_met
from nodeprep.bmc.redfish.reading import BiosReading, read_again
from nodeprep.bmc.redfish.reset import GRACEFUL_S, Restart
from nodeprep.bmc.redfish.stage import Committed, Staged, stage

DEADLINE_S = 1800.0
# A job is New while the Lifecycle Controller is busy; a reset then does not run it.
_SCHEDULED_S = 180.0
_STAGE_TRIES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How settings are brought into effect.

    Attributes:
        reset: Restart the host; without it they stay staged.
        deadline_s: For one step, from the reset to the values in effect.
        graceful_s: For the operating system to shut down.
        young_reset_s: An earlier run restarted the host and did not come back; seconds since. None for no
            such run. POST is then given the time it may still need, and not cut short.
        begun_reset: An earlier run began a reset and did not end: a host that is off is switched on, whatever
            is to be written.
        bios_password: Setup password of the BIOS.
    """

    reset: bool = True
    deadline_s: float = DEADLINE_S
    graceful_s: float = GRACEFUL_S
    young_reset_s: float | None = None
    begun_reset: bool = False
    bios_password: str = field(default="", repr=False)


@dataclass(slots=True)
class Result:
    """What came of it.

    Attributes:
        staged: Settings that were accepted in this run, or were staged before it.
        refused: Settings that the BMC did not accept, with its words.
        details: What is known of a setting that is not in effect.
        jobs: URIs, in their order.
        resets: Types that were sent.
        sent: Settings were sent to the BMC, whatever came of it.
        declined: The last that was to be written was not: nothing was sent, or all of it refused with 4xx.
        left_off: An earlier run switched the host off, and no reset was asked for that switches it on.
        error: Why it ended early.
    """

    staged: dict[str, Scalar] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    details: dict[str, str] = field(default_factory=dict)
    jobs: list[str] = field(default_factory=list)
    restarts: int = 0
    resets: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    sent: bool = False
    declined: bool = False
    left_off: bool = False
    error: str = ""
    hint: str = ""
    unreachable: bool = False


class Applier:
    """One application of settings to one BIOS.

    Args:
        reading: As it was planned on.
        steps: Settings by step; a step is written when the one before took effect.
        notify: Told each stage, in words for people.
        on_reset: Called before the host is restarted.
        on_job: Told the URI of a job that this run made, as soon as it is known.
    """

    def __init__(
        self,
        connection: Connection,
        reading: BiosReading,
        steps: Sequence[Mapping[str, Scalar]],
        options: Options,
        *,
        clock: Clock,
        notify: Callable[[str], None],
        on_reset: Callable[[], None] = lambda: None,
        on_job: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._connection = connection
        self._reading = reading
        self._steps = steps
        self._options = options
        self._clock = clock
        self._notify = notify
        self._on_reset = on_reset
        self._on_job = on_job
        self._young_reset_s = options.young_reset_s
        self.result = Result()

    def run(self) -> Result:
        """Does it; what the BMC refuses, and what is lost, is in the result.

        Raises:
            Interrupted: Broken off.
        """
        result = self.result
        with self._told():
            for number, step in enumerate(self._steps):
                if number:
                    self._reading = read_again(self._connection, self._reading)
                if not self._step(step):
                    break
        with self._told():
            self._left_off()
        return result

    @contextmanager
    def _told(self) -> Iterator[None]:
        result = self.result
        try:
            yield
        except RedfishError as error:
            result.error, result.hint = result.error or error.message, result.hint or error.hint
        except BmcUnreachable as error:
            result.error, result.hint = result.error or error.message, result.hint or error.hint
            result.unreachable = True

    def _step(self, step: Mapping[str, Scalar]) -> bool:  # noqa: PLR0911 - a stage each
        """Whether the next step may follow."""
        options, service = self._options, self._reading.service
        settings = self._reading.settings
        if wanted_met(settings, step):
            return True
        if options.reset and not self._calm():
            return False
        settings = self._reading.settings
        if wanted_met(settings, step):
            return True
        job = self._staged(step)
        accepted = {name: value for name, value in step.items() if name not in self.result.refused}
        if not accepted:
            self.result.error = self.result.error or "the BMC refused every setting"
            return False
        self.result.staged.update(accepted)
        if not options.reset:
            self.result.notes += self._later()
            return False
        if job and not self._scheduled(job):
            return False
        seen = self._seen_staged(accepted)
        ends_at = self._clock.now() + options.deadline_s
        self._restart(ends_at)
        waited = Watch(
            self._connection,
            service,
            accepted,
            job=job,
            seen_staged=seen,
            ends_at=ends_at,
            clock=self._clock,
            notify=self._notify,
        ).wait()
        if waited.settings is not None:
            self._explain(waited.settings, accepted, waited.why)
        if not waited.met:
            self.result.error, self.result.hint = waited.why, waited.hint
        return waited.met

    def _calm(self) -> bool:
        young, self._young_reset_s = self._young_reset_s, None
        self.result.error, self.result.hint = unrest(
            self._connection,
            self._reading,
            {name: value for step in self._steps for name, value in step.items()},
            open_job=self._bios_job,
            young_reset_s=young,
            deadline_s=self._options.deadline_s,
            clock=self._clock,
            notify=self._notify,
        )
        if self.result.error:
            self.result.declined = True
            return False
        self._reading = read_again(self._connection, self._reading)
        return True

    def _left_off(self) -> None:
        """An earlier run switched the host off and never on again: nobody else will."""
        options, result = self._options, self.result
        if not options.begun_reset or result.resets or result.unreachable:
            return
        if power_now(self._connection, self._reading.service.system.uri) != "Off":
            return
        if not options.reset:
            result.left_off = True
            result.notes.append(
                "the host is off since an earlier run, which did not end: it stays off without a reset; "
                "the same without --no-reset switches it on"
            )
            return
        self._notify("the host is off since an earlier run, which did not end: switching it on")
        ends_at = self._clock.now() + options.deadline_s
        self._restart(ends_at)
        if result.error:
            return
        waited = Watch(
            self._connection,
            self._reading.service,
            {name: value for step in self._steps for name, value in step.items()},
            job="",
            seen_staged=False,
            ends_at=ends_at,
            clock=self._clock,
            notify=self._notify,
        ).wait()
        if not waited.met:
            result.error, result.hint = waited.why, waited.hint

    # Staging

    def _staged(self, step: Mapping[str, Scalar]) -> str:
        """Stages what is not yet; the job that will bring it into effect, "" on a BMC without jobs."""
        changed: PreconditionFailed | None = None
        for _ in range(_STAGE_TRIES):
            self.result.declined = False
            settings = self._reading.settings
            missing = {
                name: value
                for name, value in settings.differences(step).items()
                if name not in self.result.refused
            }
            jobs = open_jobs(self._connection, self._reading.service) or ()
            self._refuse_conflicts(jobs, writes=bool(missing))
            mine = next((job for job in jobs if job.is_bios), None)
            if not missing:
                return mine.uri if mine is not None else self._made_job()
            try:
                done = self._write(settings, missing)
            except PreconditionFailed as error:
                if not error.changed:
                    raise
                changed = error
                self._notify("somebody else changed what is staged: looking again")
                self._reading = read_again(self._connection, self._reading)
                continue
            except Committed as error:
                # The answer to an earlier try may have been lost: then what is committed is ours.
                self._reading = read_again(self._connection, self._reading)
                if self._reading.settings.differences(missing):
                    raise
                self._notify(f"staged already: {error.message}")
                continue
            self.result.refused.update(done.refused)
            return self._job_of(done)
        assert changed is not None  # noqa: S101
        raise changed

    def _write(self, settings: BiosSettings, missing: Mapping[str, Scalar]) -> Staged:
        self._notify(f"staging {', '.join(f'{name}={value}' for name, value in missing.items())}")
        self.result.sent = True
        try:
            done = stage(self._connection, settings, missing, bios_password=self._options.bios_password)
        except RedfishError as error:
            self.result.declined = 400 <= error.status < 500 and not error.after_lost_answer
            raise
        self.result.declined = done.declined
        return done

    def _refuse_conflicts(self, jobs: Sequence[Job], *, writes: bool) -> None:
        for job in jobs:
            if blocks_change(job, writes=writes):
                self.result.declined = True
                raise Committed(in_the_way(job), uri=job.uri, hint="nothing was written")

    def _job_of(self, done: Staged) -> str:
        if done.job:
            self._note_job(done.job)
            return done.job
        if not done.accepted:
            return ""
        # Source: dsx-ai-factory/libredfish#97: 200 and no job named, when the same values wait already.
        mine = self._bios_job()
        return self._noted(mine.uri) if mine is not None else self._made_job()

    def _made_job(self) -> str:
        """A job for values that are staged without one; "" on a BMC that needs none.

        Source: community.general#9012: without a job they stay staged for ever.
        """
        service = self._reading.service
        if not has_queue(service) or open_jobs(self._connection, service) is None:
            return ""
        self._notify("what is staged has no job: making one")
        uri = create_job(self._connection, service, self._reading.settings)
        if not uri:
            mine = self._bios_job()
            uri = mine.uri if mine is not None else ""
        return self._noted(uri) if uri else ""

    def _bios_job(self) -> Job | None:
        jobs = open_jobs(self._connection, self._reading.service) or ()
        return next((job for job in jobs if job.is_bios), None)

    def _noted(self, uri: str) -> str:
        self._note_job(uri)
        return uri

    def _note_job(self, uri: str) -> None:
        if uri not in self.result.jobs:
            self.result.jobs.append(uri)
            self._on_job(uri)

    def _seen_staged(self, accepted: Mapping[str, Scalar]) -> bool:
        """Whether the BMC shows all of them as staged; some have nothing to show them in."""
        after = read_again(self._connection, self._reading)
        self._reading = after
        return not after.settings.differences(accepted) and after.settings.settings is not None

    # Reset

    def _scheduled(self, uri: str) -> bool:
        most_s = min(_SCHEDULED_S, self._options.deadline_s)
        until, told = self._clock.now() + most_s, False
        while True:
            job = read_job(self._connection, uri)
            if job is None or job.waits_for_reset or not job.open:
                return True
            if self._clock.now() + POLL_S >= until:
                self.result.error = (
                    f"job {job} is not scheduled after {most_s:.0f} s: a reset would not run it"
                )
                self.result.hint = (
                    "is the Lifecycle Controller busy? Run the same again later; the host was not reset"
                )
                return False
            if not told:
                self._notify(f"job {job}: waiting until it is scheduled, at most {most_s:.0f} s")
                told = True
            self._clock.wait(POLL_S)

    def _restart(self, ends_at: float) -> None:
        self._on_reset()
        restart = Restart(
            self._connection,
            self._reading.service,
            graceful_s=self._options.graceful_s,
            ends_at=ends_at,
            clock=self._clock,
            notify=self._notify,
        )
        try:
            done = restart.run()
        finally:
            self.result.resets += restart.done.sent
        self.result.restarts += 1
        if done.forced:
            self.result.notes.append(
                "the operating system did not shut down in time: the host was reset by force"
            )
        self._notify("waiting for POST and the values to take effect")

    def _later(self) -> list[str]:
        return ["staged: in effect after the next reset of the host"]

    # What is known of settings that did not make it

    def _explain(self, settings: BiosSettings, wanted: Mapping[str, Scalar], why: str) -> None:
        told = [str(one) for one in settings.applied_messages if one.key not in ("Success", "")]
        for name, value in wanted.items():
            if settings.current.get(name) == value:
                continue
            own = [text for text in told if name in text]
            self.result.details[name] = "; ".join(own or told) or why
