"""What on a BMC is of an earlier run of this controller, by its restore point, and what is of others."""

from __future__ import annotations

from nodeprep.bmc.redfish.bios import BiosSettings
from nodeprep.bmc.redfish.jobs import Job
from nodeprep.model.bios_restore import RestorePoint


def is_own(job: Job, point: RestorePoint, settings: BiosSettings) -> bool:
    """Whether an open job for BIOS settings is of the run of a restore point.

    A run that was killed before the BMC's answer came never learned the name of its job: then what is staged
    tells, if it is what that run was to write and nothing else.
    """
    if not job.is_bios:
        return False
    if job.id in {uri.rstrip("/").rsplit("/", 1)[-1] for uri in point.jobs}:
        return True
    return bool(settings.pending) and own_staged(point, settings) == settings.pending.keys()


def own_staged(point: RestorePoint | None, settings: BiosSettings) -> frozenset[str]:
    """Names of what is staged as an unfinished run was to write it."""
    if point is None or point.finished:
        return frozenset()
    return frozenset(
        name
        for name, value in settings.pending.items()
        if name in point.planned and point.planned[name] == value
    )
