"""What keeps a BMC from taking BIOS settings, as far as it says so before it is asked to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from nodeprep.bmc.redfish.connection import Connection
from nodeprep.bmc.redfish.errors import RedfishError
from nodeprep.bmc.redfish.jobs import Job, open_jobs
from nodeprep.bmc.redfish.resource import Resource
from nodeprep.bmc.redfish.service import Service

_LOCK_NAMES = (
    "Lockdown.1.SystemLockdown",
    "Lockdown.1#SystemLockdown",
    "SystemLockdown",
    "SysLockdownEnabled",
)


def blocks(
    connection: Connection, service: Service, *, writes: bool, own: Callable[[Job], bool] = lambda _: False
) -> tuple[str, ...]:
    """Reasons in sentences; none when nothing is known to be in the way.

    Args:
        writes: Something is still to be staged. What is staged already only needs a reset.
        own: Whether a job is of an earlier run of nodeprep.
    """
    found = [*_lockdown(connection, service)]
    jobs = open_jobs(connection, service) or ()
    found += [in_the_way(job, own=own(job)) for job in jobs if blocks_change(job, writes=writes)]
    return tuple(found)


def blocks_change(job: Job, *, writes: bool) -> bool:
    """Whether an open job forbids a change of BIOS settings.

    Source: stackhpc/drac#2: jobs for BIOS and RAID at one reset sent the Lifecycle Controller into a loop.
    """
    return writes if job.is_bios else job.changes_host


def in_the_way(job: Job, *, own: bool = False) -> str:
    """The reason, with what to do."""
    if own:
        return (
            f"job {job} of an earlier run of nodeprep holds what is staged, one at a time: "
            "`nodeprep bios rollback --bmc URL --no-reset` deletes it, or the same as before, applied again, "
            "brings it into effect"
        )
    if job.is_bios:
        return (
            f"job {job} holds what is staged, one at a time: let the host reset so that it runs, "
            "or delete it on the BMC. nodeprep deletes no job of others"
        )
    return f"job {job} waits for the next reset: it must end first"


def _lockdown(connection: Connection, service: Service) -> Iterator[str]:
    for place in _lock_places(service):
        try:
            body = connection.get(place).body
        except RedfishError:
            continue
        name = _locked(body)
        if name:
            yield f"the system is locked down ({name} in {place})"
            return


def _lock_places(service: Service) -> Iterator[str]:
    manager = service.manager
    if manager is None:
        return
    who = {service.identity.vendor, service.identity.redfish}
    if "dell" in who:
        yield f"{manager.uri.rstrip('/')}/Attributes"
    if "supermicro" in who:
        link = _dig(manager, "Oem", "Supermicro", "SysLockdown", "@odata.id")
        if isinstance(link, str) and link.startswith("/"):
            yield link


def _dig(resource: Resource, *path: str) -> Any:
    value: Any = resource.body
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _locked(body: Mapping[str, Any]) -> str:
    attributes = body.get("Attributes")
    for place in (attributes, body):
        for name in _LOCK_NAMES:
            value = place.get(name) if isinstance(place, Mapping) else None
            if value is True or (isinstance(value, str) and value.lower() == "enabled"):
                return name
    return ""
