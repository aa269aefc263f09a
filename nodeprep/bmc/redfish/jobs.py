"""Jobs and tasks: what a BMC has in hand, and what became of it.

Dell's iDRAC brings BIOS settings into effect by a job, one at a time. Others answer with a task, or nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from nodeprep.bmc.redfish.bios import BiosSettings
from nodeprep.bmc.redfish.connection import Connection
from nodeprep.bmc.redfish.errors import Malformed, Missing, Refused
from nodeprep.bmc.redfish.resource import Resource
from nodeprep.bmc.redfish.service import Service

_WELL = frozenset({"completed", "completedok"})
_BADLY = frozenset(
    {
        "completedwitherrors", "failed", "exception", "killed", "cancelled", "canceled", "removed", "invalid",
        "rebootfailed", "userintervention",
    }
)  # fmt: skip
# A reset in these states does not run the job. Source: dell/iDRAC-Redfish-Scripting#108.
_NOT_YET = frozenset({"new", "starting", "downloading"})
_EXPAND = "?$expand=*($levels=1)"


@dataclass(frozen=True, slots=True)
class Job:
    """One job or task.

    Attributes:
        id: The last part of its URI.
        kind: JobType; "" for a task.
        state: As written.
        troubled: It says so beside its state: a task that is Completed with a Warning.
    """

    uri: str
    id: str
    kind: str
    name: str
    state: str
    message: str = ""
    troubled: bool = False

    @property
    def done(self) -> bool:
        """It ended well."""
        return self.state.lower() in _WELL and not self.troubled

    @property
    def failed(self) -> bool:
        """It ended otherwise."""
        return self.state.lower() in _BADLY or (self.state.lower() in _WELL and self.troubled)

    @property
    def open(self) -> bool:
        """It has not ended; a state nobody knows counts as open."""
        return not (self.done or self.failed)

    @property
    def waits_for_reset(self) -> bool:
        """A reset now would run it."""
        return self.open and self.state.lower() not in _NOT_YET

    @property
    def runs(self) -> bool:
        """It is at work now: a reset would cut it short."""
        return self.state.lower() == "running"

    @property
    def is_bios(self) -> bool:
        """It is one for BIOS settings."""
        return "bios" in f"{self.kind} {self.name}".lower()

    @property
    def changes_host(self) -> bool:
        """It configures or updates something at the next reset. A reboot of its own kind does not."""
        words = f"{self.kind} {self.name}".lower()
        return any(word in words for word in ("configur", "update"))

    def __str__(self) -> str:
        what = self.kind or self.name or "job"
        return f"{self.id} ({what}, {self.state}{f': {self.message}' if self.message else ''})"


def has_queue(service: Service) -> bool:
    """Whether this BMC needs a job to bring BIOS settings into effect."""
    return "dell" in (service.identity.redfish, service.identity.vendor)


def open_jobs(connection: Connection, service: Service) -> tuple[Job, ...] | None:
    """Jobs that have not ended; None when the BMC has no queue, or none that can be found.

    Raises:
        BmcUnreachable: No answer.
    """
    if not has_queue(service):
        return None
    for place in _places(service):
        members = _members(connection, place)
        if members is not None:
            return tuple(job for job in members if job.open)
    return None


def read_job(connection: Connection, uri: str) -> Job | None:
    """A job as it is now; None when the BMC does not know it any more.

    Raises:
        BmcUnreachable: No answer.
    """
    # A task says less than the job of the same id: not whether it completed with errors.
    try:
        return _job(connection.get(uri))
    except (Missing, Malformed):
        return None


def create_job(connection: Connection, service: Service, settings: BiosSettings) -> str:
    """Makes the job for settings that are staged without one; its URI, "" when the answer names none.

    Source: iDRAC before 4.x, which knows no apply times.

    Raises:
        RedfishError: Refused, or no queue.
    """
    failure: Missing | Refused | None = None
    target = settings.settings.uri if settings.settings is not None else settings.write_uris[0]
    for place in _places(service):
        try:
            return connection.post(place, {"TargetSettingsURI": target}).location
        except Missing as error:
            failure = error
        except Refused as error:
            if error.status != 405:
                raise
            failure = error
    assert failure is not None  # noqa: S101
    raise failure


def _places(service: Service) -> Iterator[str]:
    manager = service.manager.uri.rstrip("/") if service.manager is not None else ""
    named: list[str] = []
    if service.manager is not None:
        for path in (("Links", "Oem", "Dell", "Jobs"), ("Oem", "Dell", "Jobs"), ("Jobs",)):
            try:
                found = service.manager.find_link(*path)
            except Malformed:
                continue
            if found:
                named.append(found)
    usual = [f"{manager}/Oem/Dell/Jobs", f"{manager}/Jobs"] if manager else []
    yield from dict.fromkeys((*named, *usual))


def _members(connection: Connection, place: str) -> list[Job] | None:
    body: Resource | None = None
    for uri in (place + _EXPAND, place):
        try:
            body = connection.get(uri)
            break
        except (Missing, Refused, Malformed):
            continue
    if body is None:
        return None
    listed = body.body.get("Members")
    jobs: list[Job] = []
    for entry in listed if isinstance(listed, list) else []:
        if isinstance(entry, Mapping) and "JobState" in entry:
            jobs.append(_job(Resource(_text(entry.get("@odata.id")), entry)))
            continue
        try:
            found = read_job(connection, body.as_link(entry, "Members"))
        except (Malformed, Refused):
            continue
        if found is not None:
            jobs.append(found)
    return jobs


def _job(resource: Resource) -> Job:
    body = resource.body
    state = _text(body.get("JobState")) or _text(body.get("TaskState"))
    # Only with an end to it: a task that runs may well carry a warning.
    trouble = _text(body.get("TaskStatus")).lower() in ("warning", "critical")
    return Job(
        resource.uri,
        _text(body.get("Id")) or resource.uri.rstrip("/").rsplit("/", 1)[-1],
        _text(body.get("JobType")),
        _text(body.get("Name")),
        state or "unknown",
        _text(body.get("Message")) or _messages(body),
        trouble,
    )


def _messages(body: Mapping[str, Any]) -> str:
    listed = body.get("Messages")
    found = (
        [_text(entry.get("Message")) for entry in listed if isinstance(entry, Mapping)]
        if isinstance(listed, list)
        else []
    )
    return "; ".join(text for text in found if text)


def _text(value: Any) -> str:
    return value.strip() if isinstance(value, str) else ""
