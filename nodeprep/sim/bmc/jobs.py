"""Jobs of a BMC that brings settings into force with them. Source: Dell iDRAC 9."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from nodeprep.sim.bmc.conduct import JobConduct
from nodeprep.sim.bmc.host import Host

BIOS_JOB = "BIOSConfiguration"
RAID_JOB = "RAIDConfiguration"
ENDED = frozenset({"Completed", "Failed", "CompletedWithErrors"})
_MESSAGES = {
    "New": ("PR0", "New"),
    "Scheduled": ("JCP001", "Task successfully scheduled."),
    "Running": ("PR20", "Job in progress."),
    "Completed": ("PR19", "Job completed successfully."),
    "CompletedWithErrors": ("PR18", "Job completed with errors."),
    "Failed": ("PR21", "Failed."),
}
_TASK_STATES = {"New": "New", "Scheduled": "Pending", "Running": "Running", "Failed": "Exception"}


@dataclass(slots=True)
class Job:
    """One job.

    Attributes:
        due: Number of the boot that runs it; 0 while it is New.
    """

    id: str
    kind: str
    made: float
    due: int = 0
    state: str = "New"

    @property
    def open(self) -> bool:
        """Whether it has not ended."""
        return self.state not in ENDED


class Jobs:
    """The job queue.

    Args:
        clock: Seconds, growing.
        host: Its boots run the jobs.
    """

    def __init__(self, conduct: JobConduct, clock: Callable[[], float], host: Host) -> None:
        self._conduct = conduct
        self._clock = clock
        self._host = host
        self._jobs: dict[str, Job] = {}
        if conduct.foreign:
            self.make(BIOS_JOB if conduct.foreign == "bios" else RAID_JOB)

    def make(self, kind: str) -> Job:
        """A new job."""
        # JID_ and twelve digits, as a real one; the number tells the order.
        job = Job(f"JID_{700000000000 + len(self._jobs) + 1}", kind, self._clock())
        self._jobs[job.id] = job
        self.advance()
        return job

    def all(self) -> list[Job]:
        """Every job, ended ones too."""
        return list(self._jobs.values())

    def get(self, name: str) -> Job | None:
        """A job by its id."""
        return self._jobs.get(name)

    def open(self, kind: str) -> Job | None:
        """The job of a kind that has not ended, if any."""
        return next((job for job in self._jobs.values() if job.open and job.kind == kind), None)

    def delete(self, job: Job) -> None:
        """Take a job out of the queue."""
        del self._jobs[job.id]

    def advance(self) -> list[Job]:
        """Bring every job to where it is now. Returns those that have just ended."""
        now, ended = self._clock(), []
        for job in self._jobs.values():
            if job.state == "New" and not self._conduct.stuck and now >= job.made + self._conduct.new_s:
                job.state = "Scheduled"
                job.due = self._host.boots_begun + 1
            if job.state == "Scheduled" and self._host.in_post and self._host.boots_begun >= job.due:
                job.state = "Running"
            if job.state in ("Scheduled", "Running") and self._host.boots_done >= job.due:
                job.state = self._conduct.result
                ended.append(job)
        return ended

    def body(self, job: Job, uri: str) -> dict[str, Any]:
        """A job as the vendor's own resource."""
        key, text = _MESSAGES[job.state]
        return {
            "@odata.id": uri,
            "@odata.type": "#DellJob.v1_3_0.DellJob",
            "Id": job.id,
            "Name": "Configure: BIOS.Setup.1-1" if job.kind == BIOS_JOB else "Configure: RAID.Integrated.1-1",
            "Description": "Job Instance",
            "JobType": job.kind,
            "JobState": job.state,
            "MessageId": key,
            "Message": text,
            "MessageArgs": [],
            "PercentComplete": self._percent(job),
            "StartTime": "TIME_NOW",
            "EndTime": "TIME_NA",
            "CompletionTime": None if job.open else "2024-01-01T00:00:00",
            "TargetSettingsURI": None,
        }

    def task(self, job: Job, uri: str) -> dict[str, Any]:
        """A job as a task of the TaskService."""
        key, text = _MESSAGES[job.state]
        bad = job.state in ("Failed", "CompletedWithErrors")
        return {
            "@odata.id": uri,
            "@odata.type": "#Task.v1_6_0.Task",
            "Id": job.id,
            "Name": "Configure: BIOS.Setup.1-1" if job.kind == BIOS_JOB else "Configure: RAID.Integrated.1-1",
            "TaskState": _TASK_STATES.get(job.state, "Completed"),
            "TaskStatus": "Warning" if bad else "OK",
            "PercentComplete": self._percent(job),
            "Messages": [{"MessageId": key, "Message": text, "MessageArgs": []}],
        }

    def _percent(self, job: Job) -> int:
        return {"New": 0, "Scheduled": 0, "Running": 34}.get(job.state, 100)
