"""Waiting until a host is at rest before its BIOS is written: no POST, no job at work, no reset under way.

An earlier run, or somebody else, may just have restarted it. A host that is off is waited for by nobody: what
is scheduled for its next start never runs by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from nodeprep.bmc.redfish.bios import Scalar
from nodeprep.bmc.redfish.connection import Connection
from nodeprep.bmc.redfish.jobs import Job
from nodeprep.bmc.redfish.patience import Clock
from nodeprep.bmc.redfish.post import Waited, Watch, in_post, leave_post, power_now
from nodeprep.bmc.redfish.reading import BiosReading

# A reset of an earlier run is waited for that long after it, and no longer.
POST_S = 600.0
# While a job is at work the Lifecycle Controller switches the host off and on again by itself.
_CYCLE_S = 90.0
_OFF = "the host is off and nothing is under way: going on with the reset, which switches it on"


def unrest(
    connection: Connection,
    reading: BiosReading,
    wanted: Mapping[str, Scalar],
    *,
    open_job: Callable[[], Job | None],
    young_reset_s: float | None,
    deadline_s: float,
    clock: Clock,
    notify: Callable[[str], None],
) -> tuple[str, str]:
    """Waits; why nothing may be written all the same, and what to do; "" when it may.

    Args:
        wanted: What will be written.
        open_job: Reads the open job for BIOS settings, if there is one.
        young_reset_s: Seconds since an earlier run restarted the host; None for no such run.
        deadline_s: It waits no longer.

    Raises:
        BmcUnreachable: No answer.
        Interrupted: Broken off.
    """
    service, begun = reading.service, clock.now()
    if not leave_post(connection, service, begun + deadline_s, clock):
        return "the host does not come out of POST: nothing was written", "look at its console"
    job = open_job()
    runs = job is not None and job.runs
    if not runs and young_reset_s is None:
        return "", ""
    if not runs and power_now(connection, service.system.uri) == "Off":
        notify(_OFF)
        return "", ""
    due_s = deadline_s if runs else max(0.0, POST_S - (young_reset_s or 0.0))
    left_s = max(0.0, min(due_s, begun + deadline_s - clock.now()))
    notify(f"an earlier reset is still under way: waiting for it, at most {left_s:.0f} s")
    staged = {name: value for name, value in reading.settings.pending.items() if wanted.get(name) == value}
    waited = Watch(
        connection,
        service,
        staged,
        job=job.uri if job is not None else "",
        # Without one that is awaited, nothing leaves the list: only time tells that POST is over.
        seen_staged=bool(staged),
        ends_at=clock.now() + left_s,
        off_s=_CYCLE_S if runs else 0.0,
        clock=clock,
        notify=notify,
    ).wait()
    if waited.off:
        notify(_OFF)
        return "", ""
    posting = in_post(connection.get(service.system.uri))
    return _cut_short(waited, waited_s=left_s, due_s=due_s, posting=posting)


def _cut_short(waited: Waited, *, waited_s: float, due_s: float, posting: bool | None) -> tuple[str, str]:
    """Why a reset now would cut short what was waited for; "" when it would not."""
    if waited.job is not None and waited.job.runs:
        return (
            f"job {waited.job} is still at work after {waited_s:.0f} s: a reset would cut it short",
            "nothing was written; run the same again later, or with a longer --deadline-s",
        )
    if waited_s < due_s and not waited.decided and posting is None:
        again_s = due_s - waited_s
        return (
            f"an earlier reset may still be under way after {waited_s:.0f} s, and this BMC shows no POST",
            f"nothing was written; run the same again in {again_s:.0f} s, or with a longer --deadline-s",
        )
    return "", ""
