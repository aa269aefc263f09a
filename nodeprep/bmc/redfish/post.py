"""Waiting through POST until settings are in effect: the job ended, POST over, the values read back.

A BMC shows new values before they are in effect, goes away while the host starts, and forgets what it was
told. So nothing is taken for done on one sign alone. Source: dsx-ai-factory/libredfish#25.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from nodeprep.bmc.failures import BmcLoginRefused, BmcUnreachable
from nodeprep.bmc.redfish.bios import BiosSettings, Scalar, read_bios
from nodeprep.bmc.redfish.connection import Connection
from nodeprep.bmc.redfish.errors import Malformed, Missing, NotTrusted, Refused
from nodeprep.bmc.redfish.jobs import Job, read_job
from nodeprep.bmc.redfish.patience import Clock
from nodeprep.bmc.redfish.resource import Resource
from nodeprep.bmc.redfish.service import Service

POLL_S = 5.0
# For one look; the BMC may be away for minutes while the host starts.
_LOOK_S = 30.0
# What is neither staged any more nor in effect by then will not come: some BMCs learn the values late.
_LATE_S = 180.0
# Where neither a job nor POST nor a list of what is staged can be seen, values must stay so long.
_UNSEEN_S = 120.0
# What is still staged so long after POST needs something else than this reset.
_STUCK_S = 300.0
_LATE_HINT = (
    "look at the host's console; the same command again goes on from there, and `nodeprep rollback` (for one "
    "BMC `nodeprep bios rollback --bmc URL`) takes it back"
)
_POST_OVER = frozenset({"osbootstarted", "osrunning", "setupentered"})
_UNKNOWN_PROGRESS = frozenset({"", "none", "oem"})
_HPE_OVER, _HPE_UNKNOWN = frozenset({"finishedpost"}), frozenset({"", "unknown", "poweroff", "null"})
_LENOVO_POST = "startinguefi"


@dataclass(frozen=True, slots=True)
class Waited:
    """How the waiting ended.

    Attributes:
        settings: As last read; None when they could not be read.
        met: All values are in effect, and the job, if any, ended well.
        why: Why not; "" when met.
        off: The host is off, and so long that nothing will switch it on.
        decided: By what was seen, and not because the time was over.
    """

    settings: BiosSettings | None
    job: Job | None
    met: bool
    why: str = ""
    hint: str = ""
    off: bool = False
    decided: bool = True


def in_post(system: Resource) -> bool | None:
    """Whether the host is in POST; None when the BMC does not tell."""
    progress = _word(system.body, "BootProgress", "LastState")
    if progress not in _UNKNOWN_PROGRESS:
        return progress not in _POST_OVER
    for oem in ("Hpe", "Hp"):
        state = _word(system.body, "Oem", oem, "PostState")
        if state not in _HPE_UNKNOWN:
            return state not in _HPE_OVER
    status = _word(system.body, "Oem", "Lenovo", "SystemStatus")
    if status and "poweroff" not in status:
        return _LENOVO_POST in status
    return None


def power_of(system: Resource) -> str:
    """PowerState: On, Off, PoweringOn, PoweringOff; "" when it is not told."""
    value = system.body.get("PowerState")
    return value if isinstance(value, str) else ""


def power_now(connection: Connection, system: str, *, patience_s: float = _LOOK_S) -> str:
    """PowerState of the system at a URI as it is now; "" when the BMC does not answer or tell it.

    Raises:
        BmcLoginRefused, NotTrusted: No use to ask again.
        Interrupted: Broken off.
    """
    try:
        return power_of(connection.get(system, patience_s=patience_s))
    except (BmcLoginRefused, NotTrusted):
        raise
    except (BmcUnreachable, Missing):
        return ""


def wanted_met(settings: BiosSettings, wanted: Mapping[str, Scalar]) -> bool:
    """All values are in effect, and nothing is staged that would take them back."""
    return not settings.differences(wanted) and all(name not in settings.pending for name in wanted)


def leave_post(connection: Connection, service: Service, ends_at: float, clock: Clock) -> bool:
    """Waits while the host is in POST, which must not be cut short; False when it does not end in time."""
    while True:
        try:
            system = connection.get(service.system.uri)
            # Some BMCs keep the progress of a boot that ended with the host switched off.
            if in_post(system) is not True or power_of(system) == "Off":
                return True
        except (BmcLoginRefused, NotTrusted):
            raise
        except BmcUnreachable:
            pass
        if clock.now() + POLL_S >= ends_at:
            return False
        clock.wait(POLL_S)


class Watch:
    """Watches one BMC until some values are in effect.

    Args:
        job: URI; "" for none.
        seen_staged: The BMC showed these values as staged, so it will be seen when they no longer are.
        ends_at: By the clock.
        off_s: A host that is off for so long is not waited for; None where it is being switched on.
    """

    def __init__(
        self,
        connection: Connection,
        service: Service,
        wanted: Mapping[str, Scalar],
        *,
        job: str,
        seen_staged: bool,
        ends_at: float,
        off_s: float | None = None,
        clock: Clock,
        notify: Callable[[str], None],
    ) -> None:
        self._connection = connection
        self._service = service
        self._wanted = wanted
        self._job_uri = job
        self._seen_staged = seen_staged
        self._ends_at = ends_at
        self._off_s = off_s
        self._off_since: float | None = None
        self._clock = clock
        self._notify = notify
        self._job: Job | None = None
        self._settings: BiosSettings | None = None
        self._met_before = False
        self._calm_since: float | None = None
        self._silence = ""

    def wait(self) -> Waited:
        """Looks until it is decided, or the time is over.

        Raises:
            BmcLoginRefused, NotTrusted: No use to wait.
            Interrupted: Broken off.
        """
        while True:
            try:
                ended = self._look()
                self._silence = ""
            except (BmcLoginRefused, NotTrusted):
                raise
            except BmcUnreachable as error:
                # The BMC may restart with the host, or be busy with it.
                ended, self._silence = None, error.message
            except (Missing, Malformed, Refused) as error:
                # iDRAC serves half a tree while it collects what POST told it.
                ended, self._silence = None, error.message
            if ended is not None:
                return ended
            if self._clock.now() + POLL_S >= self._ends_at:
                return Waited(self._settings, self._job, False, self._too_late(), _LATE_HINT, decided=False)
            self._clock.wait(POLL_S)

    def _look(self) -> Waited | None:
        if self._job_uri:
            job = read_job(self._connection, self._job_uri)
            if job is not None and (self._job is None or job.state != self._job.state):
                self._notify(f"job {job}")
            self._job = job or self._job
        system = self._connection.get(self._service.system.uri, patience_s=_LOOK_S)
        self._settings = settings = read_bios(self._connection, self._service)
        job_open = self._job is not None and self._job.open
        if self._job is not None and self._job.failed:
            return Waited(settings, self._job, False, f"job {self._job} did not end well")
        if self._stays_off(power_of(system)):
            return Waited(settings, self._job, False, "the host is off", off=True)
        posting = in_post(system)
        met = wanted_met(settings, self._wanted)
        calm = not job_open and power_of(system) in ("On", "") and posting is not True
        if not calm:
            self._calm_since, self._met_before = None, False
            return None
        if self._calm_since is None:
            self._calm_since = self._clock.now()
        if met:
            sure = posting is False or self._job is not None or self._steady(settings)
            self._met_before = True
            return Waited(settings, self._job, True) if sure else None
        self._met_before = False
        return self._given_up(settings, posting)

    def _stays_off(self, power: str) -> bool:
        if power != "Off":
            self._off_since = None
            return False
        if self._off_since is None:
            self._off_since = self._clock.now()
        return self._off_s is not None and self._clock.now() - self._off_since >= self._off_s

    def _steady(self, settings: BiosSettings) -> bool:
        """Whether values are in effect, and not only shown early, where the BMC says nothing of POST.

        A settings resource that lists only what waits tells it: a value is in effect when it left the list.
        """
        listed = _listed(settings)
        if self._seen_staged and 2 * len(listed) < len(settings.current):
            return self._met_before and not any(name in listed for name in self._wanted)
        return self._clock.now() - (self._calm_since or 0.0) >= _UNSEEN_S

    def _given_up(self, settings: BiosSettings, posting: bool | None) -> Waited | None:
        calm_s = self._clock.now() - (self._calm_since or 0.0)
        staged = [name for name in self._wanted if name in settings.pending]
        told = posting is False or self._job is not None
        if staged and told and calm_s >= _STUCK_S:
            return Waited(settings, self._job, False, f"{', '.join(staged)} stayed staged through POST")
        if not staged and (told or self._seen_staged) and calm_s >= _LATE_S:
            return Waited(settings, self._job, False, "the BMC took the values, and POST did not keep them")
        return None

    def _too_late(self) -> str:
        if self._silence:
            return f"the time for it is over, and the BMC does not answer: {self._silence}"
        if self._job is not None and self._job.open:
            return f"the time for it is over, and job {self._job} has not ended"
        return "the time for it is over, and the values are not in effect"


def _listed(settings: BiosSettings) -> frozenset[str]:
    """Names of all that the settings resource lists, also with the value that is in effect."""
    if settings.settings is None:
        return frozenset()
    body = settings.settings.body
    attributes = body.get("Attributes")
    return frozenset(name for name in (attributes if isinstance(attributes, Mapping) else body))


def _word(body: Mapping[str, Any], *path: str) -> str:
    value: Any = body
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value.lower() if isinstance(value, str) else ""
