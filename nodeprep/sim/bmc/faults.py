"""Every way in which a simulated BMC can deviate from its vendor's usual behaviour, by name.

Give one with `nodeprep sim bmc --fault NAME`, several times for several. Each says what a client sees.
"""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from nodeprep.errors import UsageError
from nodeprep.sim.bmc.conduct import Conduct


@dataclass(frozen=True, slots=True)
class Fault:
    """One deviation.

    Attributes:
        title: What a client sees, in one line.
        put: A conduct with it.
    """

    id: str
    title: str
    put: Callable[[Conduct], Conduct]


def with_faults(conduct: Conduct, names: Sequence[str]) -> Conduct:
    """A conduct with some faults in it.

    Raises:
        UsageError: There is no fault of that name.
    """
    for name in names:
        if name not in FAULTS:
            close = difflib.get_close_matches(name, FAULTS, n=1)
            hint = f"did you mean {close[0]}?" if close else "nodeprep sim bmc --list-faults shows them all"
            raise UsageError(f"a simulated BMC has no fault {name!r}", hint=hint)
        conduct = FAULTS[name].put(conduct)
    idle = [name for name in names if name.startswith("job_") and conduct.staging.apply_time != "job"]
    if idle:
        # Without this a test would pass because its fault did nothing.
        raise UsageError(
            f"fault {idle[0]}: a BMC like this one ({conduct.vendor}) has no jobs",
            hint="add the fault apply_time_job, or take a dump of an iDRAC",
        )
    return conduct


def _fault(name: str, title: str, **parts: Mapping[str, Any]) -> Fault:
    """A fault that changes fields of parts of the conduct: `link={"hang": True}`."""

    def put(conduct: Conduct) -> Conduct:
        changed = {
            part: dataclasses.replace(getattr(conduct, part), **fields) for part, fields in parts.items()
        }
        return dataclasses.replace(conduct, **changed)

    return Fault(name, title, put)


_ALL = (
    # ---- the connection
    _fault("drop", "every third request loses its connection before the answer", link={"drop_every": 3}),
    _fault("rst", "TCP RST at the second request of a kept connection", link={"reset_after": 1}),
    _fault("half", "the answer to every third GET is cut in the middle", link={"half_every": 3}),
    _fault("close", "every answer closes its connection", link={"close_each": True}),
    _fault(
        "lost_answer", "the first change is carried out, and its answer is lost", link={"lost_answers": 1}
    ),
    _fault("slow", "every answer takes two seconds", link={"delay_s": 2.0}),
    _fault("hang", "no request gets an answer", link={"hang": True}),
    # ---- readiness
    _fault("busy", "every third request: 503 with Retry-After: 1", ready={"busy_every": 3}),
    _fault(
        "busy_date",
        "every third request: 503, Retry-After as an HTTP date",
        ready={"busy_every": 3, "retry_after": "date"},
    ),
    _fault(
        "busy_bare",
        "every third request: 503 without Retry-After",
        ready={"busy_every": 3, "retry_after": ""},
    ),
    _fault("busy_always", "every request: 503 with Retry-After: 1", ready={"busy_every": 1}),
    _fault(
        "not_ready",
        "not ready for 2 s after the start and after each reset: 503 (iDRAC: SWC0700)",
        ready={"not_ready_s": 2.0},
    ),
    _fault(
        "not_ready_400",
        "the same, told with status 400 as busy iDRACs do",
        ready={"not_ready_s": 2.0, "not_ready_status": 400},
    ),
    # ---- logins
    _fault("no_basic", "sessions only: basic authentication is refused", login={"basic": False}),
    _fault(
        "no_sessions", "basic authentication only: there is no session service", login={"sessions": False}
    ),
    _fault("session_limit", "two sessions at a time, then 503 (iDRAC: RAC0218)", login={"session_limit": 2}),
    _fault("sessions_taken", "no session is ever free (iDRAC: RAC0218)", login={"sessions_taken": True}),
    _fault("session_expiry", "a session ends after five requests: 401", login={"session_requests": 5}),
    _fault("no_login", "nobody is asked for a login", login={"open": True}),
    # ---- the tree
    _fault("no_bios", "the system has no BIOS resource", tree={"bios": False}),
    _fault("no_settings", "BIOS attributes can be read, nothing takes new ones", tree={"settings": False}),
    _fault("no_registry", "the attribute registry is nowhere", tree={"registry": False}),
    _fault("no_settings_object", "@Redfish.Settings names no resource", tree={"settings_object": False}),
    _fault("no_reset_types", "nothing says which types of reset there are", tree={"reset_types": False}),
    _fault("null_attributes", "the first ten attributes read null", tree={"null_attributes": 10}),
    _fault("malformed", "Attributes is a list", tree={"attributes_list": True}),
    _fault("gzip", "registries come compressed, asked for or not", tree={"gzip_registries": True}),
    _fault("redirect_abroad", "BIOS resources redirect to another host", tree={"redirect_abroad": True}),
    _fault("errors_bare", "errors have no body", tree={"errors": "bare"}),
    _fault("errors_html", "errors are HTML pages", tree={"errors": "html"}),
    # ---- ETags
    _fault("etag_none", "no ETags, and If-Match is ignored", etag={"if_match": "ignored", "form": "none"}),
    _fault("etag_required", "428 without If-Match", etag={"if_match": "required"}),
    _fault(
        "etag_weak",
        "weak ETags, required, and they match as given",
        etag={"if_match": "required", "form": "weak"},
    ),
    _fault(
        "etag_strong",
        'the header is weak, and only the strong form "n" matches',
        etag={"if_match": "strong", "form": "weak"},
    ),
    _fault(
        "etag_star",
        "a weak ETag counts as none (428), a strong one fails (412): only * passes",
        etag={"if_match": "star", "form": "weak"},
    ),
    _fault(
        "etag_double",
        'the header has its quotes twice, ""n"", and only "n" matches',
        etag={"if_match": "required", "form": "double"},
    ),
    _fault(
        "etag_dummy",
        "ETag: Dummyetag, which never matches; only * passes",
        etag={"if_match": "required", "form": "dummy"},
    ),
    _fault("etag_race", "somebody else changes the settings once: 412", etag={"races": 1}),
    # ---- the settings resource
    _fault(
        "settings_404",
        "GET of the settings resource is 404 while nothing waits; PATCH works",
        staging={"absent_when_empty": True},
    ),
    _fault("settings_empty", "without waiting settings it has no Attributes", staging={"omits_empty": True}),
    _fault("put_only", "settings are taken with PUT, not with PATCH", staging={"methods": ("PUT",)}),
    _fault("apply_time_refused", "ApplyTime is refused: PropertyUnknown", staging={"apply_time": "refused"}),
    _fault(
        "apply_time_job",
        "only an ApplyTime makes a job, and only a job applies",
        staging={"apply_time": "job"},
    ),
    _fault(
        "lazy_checks", "everything is accepted; POST drops what is wrong", staging={"checks": "after_post"}
    ),
    _fault(
        "partial",
        "good attributes of a batch are taken, with messages for the bad",
        staging={"partial": True},
    ),
    _fault("licence", "403: a licence is needed (Supermicro)", staging={"refuses": "licence"}),
    _fault("lockdown", "403: the system is locked down", staging={"refuses": "lockdown"}),
    _fault(
        "bios_password", "403 without the BIOS administrator's password", staging={"refuses": "bios_password"}
    ),
    _fault("silent_drop", "settings are accepted, and never come into force", staging={"drops": "all"}),
    _fault("drop_first", "the first attribute of a batch never comes into force", staging={"drops": "first"}),
    _fault("drop_grayed", "what the registry grays out never comes into force", staging={"drops": "grayed"}),
    _fault("early", "Bios shows new values before they are in force", staging={"early": True}),
    # ---- jobs (BMCs that have them)
    _fault("job_fails", "the job fails, and the settings are gone", jobs={"result": "Failed"}),
    _fault("job_errors", "the job completes with errors", jobs={"result": "CompletedWithErrors"}),
    _fault("job_stuck", "the job stays New, whatever is reset", jobs={"stuck": True}),
    _fault(
        "job_slow", "the job is New for two seconds; a boot before that does not run it", jobs={"new_s": 2.0}
    ),
    _fault(
        "job_foreign",
        "somebody else's BIOS job is scheduled: 400 already committed",
        jobs={"foreign": "bios"},
    ),
    _fault("job_raid", "a RAID job of somebody else is scheduled", jobs={"foreign": "raid"}),
    _fault("job_lock", "no job can be made: 503, the queue is locked", jobs={"locked": True}),
    _fault("job_unnamed", "202 without Location", jobs={"location": False}),
    # ---- the host
    _fault(
        "restart_hangs",
        "a restart hangs in POST; ForceOff, 2 s, then On works",
        power={"restart": False, "off_wait_s": 2.0},
    ),
    _fault("off_slow", "ForceOff takes two seconds; On before that is refused", power={"off_s": 2.0}),
    _fault("on_lost", "an On within two seconds of the host being off is lost", power={"off_wait_s": 2.0}),
    _fault(
        "graceful_ignored", "the operating system never answers a graceful request", power={"graceful": False}
    ),
    _fault("post_slow", "POST takes ten seconds", power={"post_s": 10.0}),
    _fault("post_hangs", "POST never ends", power={"post_ends": False}),
    _fault("reset_refused", "resets are refused", power={"refused": True}),
)
FAULTS: Mapping[str, Fault] = MappingProxyType({fault.id: fault for fault in _ALL})
