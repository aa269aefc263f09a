"""PATCH and PUT of BIOS settings."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import msgspec

from nodeprep.sim.bmc.jobs import BIOS_JOB
from nodeprep.sim.bmc.messages import JSON, Message, Refused, told
from nodeprep.sim.bmc.state import State
from nodeprep.sim.bmc.tree import TASKS, Tree
from nodeprep.sim.bmc.wire import Request, Response

APPLY_TIME = "@Redfish.SettingsApplyTime"
BIOS_PASSWORD = "simulated"  # noqa: S105 - of a BIOS that does not exist
_PASSWORD_HEADER = "x-hprestfulapi-authtoken"  # noqa: S105 - the name of a header
_REFUSALS = {
    "licence": (
        403,
        "SMC.1.0.OemLicenseNotPassed",
        "Not licensed to perform this request. The following licenses DCMS were needed",
    ),
    "lockdown": (
        403,
        "{oem}.SystemLockdownEnabled",
        "Unable to complete the operation because the system is in System Lockdown mode.",
    ),
    "bios_password": (
        403,
        "{oem}.BiosPasswordRequired",
        "The BIOS administrator password is set: it must be given to change BIOS settings.",
    ),
}


def body_of(request: Request, base: str) -> dict[str, Any]:
    """The JSON object of a request.

    Raises:
        Refused: It is none.
    """
    try:
        found = json.loads(request.body or b"{}")
    except (ValueError, RecursionError):
        text = (
            "The request body submitted was malformed JSON and could not be parsed by the receiving service."
        )
        raise Refused(400, (Message(f"{base}.MalformedJSON", text),)) from None
    if not isinstance(found, dict):
        raise Refused(400, (Message(f"{base}.UnrecognizedRequestBody", "The body is no JSON object."),))
    return found


class Staging:
    """Takes settings for the next boot."""

    def __init__(self, state: State, tree: Tree) -> None:
        self._state = state
        self._tree = tree
        self._base = state.conduct.base

    def change(self, uri: str, request: Request) -> Response:
        """Stage what a request asks for.

        Args:
            uri: The settings resource, or the Bios resource where that takes settings.

        Raises:
            Refused: It is not taken.
        """
        self._may_change(uri, request)
        body = body_of(request, self._base)
        with_job = self._apply_time(body)
        values = self._state.dump.shape.sent(body)
        if values is None:
            text = "The property Attributes is a required property and must be included in the request."
            raise Refused(400, (Message(f"{self._base}.PropertyMissing", text, ("Attributes",)),))
        bad = self._state.settings.problems(values) if self._judges else {}
        good = {name: value for name, value in values.items() if name not in bad}
        if bad and not (self._state.conduct.staging.partial and good):
            raise Refused(400, tuple(bad.values()), code=f"{self._base}.GeneralError")
        if self._state.conduct.staging.apply_time == "job":
            return self._with_jobs(good, tuple(bad.values()), make=with_job)
        self._state.settings.stage(good, self._state.next_boot)
        return self._taken(tuple(bad.values()))

    @property
    def _judges(self) -> bool:
        return self._state.conduct.staging.checks != "after_post"

    def _may_change(self, uri: str, request: Request) -> None:
        state, staging = self._state, self._state.conduct.staging
        if staging.refused_in_post and state.host.in_post:
            text = "The property cannot be modified while the system is in POST."
            raise Refused(400, (Message(f"{state.conduct.oem}.UnableToModifyDuringSystemPOST", text),))
        if staging.refuses and not self._knows_password(request):
            status, key, text = _REFUSALS[staging.refuses]
            key = key.format(oem=state.conduct.oem or state.conduct.base)
            raise Refused(status, (Message(key, text, severity="Critical"),))
        if request.method == "PATCH":
            # Source: older AMI firmware, whose PUT asks for no ETag.
            state.etags.check(request.headers.get("if-match"), state.etag(uri))

    def _knows_password(self, request: Request) -> bool:
        if self._state.conduct.staging.refuses != "bios_password":
            return False
        digest = hashlib.sha256(BIOS_PASSWORD.encode()).hexdigest().upper()
        return request.headers.get(_PASSWORD_HEADER) == digest

    def _apply_time(self, body: dict[str, Any]) -> bool:
        """Whether the request asks for a job."""
        if APPLY_TIME not in body:
            return False
        if self._state.conduct.staging.apply_time == "refused":
            text = f"The property {APPLY_TIME} is not in the list of valid properties for the resource."
            raise Refused(400, (Message(f"{self._base}.PropertyUnknown", text, (APPLY_TIME,)),))
        asked = body[APPLY_TIME].get("ApplyTime") if isinstance(body[APPLY_TIME], dict) else None
        settings = self._state.dump.body(self._state.dump.bios).get("@Redfish.Settings")
        listed = settings.get("SupportedApplyTimes") if isinstance(settings, dict) else None
        allowed = listed if isinstance(listed, list) else ["OnReset"]
        if asked not in allowed:
            text = f"The value {asked!r} for the property ApplyTime is not in the list of acceptable values."
            message = Message(f"{self._base}.PropertyValueNotInList", text, (str(asked), "ApplyTime"))
            raise Refused(400, (message,))
        return True

    def _with_jobs(self, values: dict[str, Any], bad: tuple[Message, ...], *, make: bool) -> Response:
        """Settings on a BMC where only a job brings them into force. Source: iDRAC 9."""
        state = self._state
        if not state.settings.differs(values):
            # Source: dsx-ai-factory/libredfish#97. They wait already, or are in force: no job is named.
            return self._taken(bad)
        self.must_be_free()
        state.settings.stage(values, state.next_boot)
        return self.schedule(202, bad) if make else self._taken(bad)

    def must_be_free(self) -> None:
        """Raises: Refused: A job holds the settings."""
        oem = self._state.conduct.oem
        if self._state.jobs.open(BIOS_JOB) is not None:
            text = (
                "Pending configuration values are already committed, unable to perform another set operation."
            )
            raise Refused(400, (Message(f"{oem}.SYS011", text, severity="Warning"),))
        if self._state.conduct.jobs.locked:
            text = (
                "Unable to create the job because another operation is in progress: the job queue is locked."
            )
            raise Refused(503, (Message(f"{oem}.SYS518", text),), {"Retry-After": "1"})

    def schedule(self, status: int, bad: tuple[Message, ...] = ()) -> Response:
        """Make the job that brings waiting settings into force."""
        job = self._state.jobs.make(BIOS_JOB)
        named = self._state.conduct.jobs.location
        where = {"Location": f"{TASKS}/{job.id}"} if named else {}
        answer = self._taken(bad)
        return Response(status, {**answer.headers, **where}, answer.body)

    def _taken(self, bad: tuple[Message, ...]) -> Response:
        state = self._state
        if bad:
            # Source: dell/iDRAC-Redfish-Scripting#189, some of a batch with a message for the rest.
            return Response(200, JSON, msgspec.json.encode({"error": told(bad)}))
        status = state.conduct.staging.status
        if status == 204:
            return Response(204)
        if state.conduct.staging.messages or state.conduct.vendor == "hpe_ilo4":
            text = "One or more properties were changed and will not take effect until system is reset."
            reset = Message(f"{state.conduct.oem}.SystemResetRequired", text)
            error = told((reset,), f"{state.conduct.oem.rsplit('.', 2)[0]}.0.10.ExtendedInfo")
            return Response(status, JSON, msgspec.json.encode({"error": error}))
        done = Message(f"{self._base}.Success", "The request completed successfully.", severity="OK")
        return Response(status, JSON, msgspec.json.encode({"@Message.ExtendedInfo": [done.to_dict()]}))
