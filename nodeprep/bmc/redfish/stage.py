"""Stages BIOS settings for the next reset, with what each vendor wants to be told beside them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from nodeprep.bmc.redfish.answers import Answer
from nodeprep.bmc.redfish.bios import BiosSettings, Scalar
from nodeprep.bmc.redfish.connection import Connection
from nodeprep.bmc.redfish.errors import PasswordNeeded, RedfishError, Refused
from nodeprep.bmc.redfish.messages import Message
from nodeprep.bmc.redfish.settings_write import write_settings

ON_RESET = "OnReset"
_PASSWORD_HEADER = "X-HPRESTFULAPI-AuthToken"  # noqa: S105 - the name of a header
_FINE = frozenset({"", "ok", "informational"})
_GOOD_KEYS = frozenset({"Success", "SystemResetRequired", "SYS413", "SYS414", "SYS430"})
_COMMITTED = re.compile(r"already committed|pending (?:configuration|operation|job)", re.IGNORECASE)


class Committed(Refused):
    """A configuration is committed already, and there is one at a time."""


@dataclass(slots=True)
class Staged:
    """What a BMC made of some settings.

    Attributes:
        accepted: Taken as far as the answer tells.
        refused: By name, with the BMC's words.
        job: URI the answer named; "" for none.
        declined: Nothing was taken: every request was refused with 4xx, and no answer got lost.
        applied_on_reset: The BMC was told, and agreed, to bring them into effect at the next reset.
    """

    accepted: dict[str, Scalar] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    job: str = ""
    declined: bool = False
    applied_on_reset: bool = False


def stage(
    connection: Connection,
    settings: BiosSettings,
    changes: Mapping[str, Scalar],
    *,
    bios_password: str = "",
) -> Staged:
    """Writes settings; those that are refused by name are left out, and the rest is sent again.

    Args:
        bios_password: The setup password of the BIOS, sent only when the BMC asks for it (HPE).

    Raises:
        Committed: Another configuration waits already.
        LicenceNeeded, LockedDown, PasswordNeeded: Nothing was taken.
        PreconditionFailed: Somebody else changed what is staged.
        RedfishError: Refused for a reason that names no setting.
        BmcUnreachable: No answer.
    """
    return _Stager(connection, settings, bios_password).stage(changes)


def named_in(message: Message, names: Mapping[str, Scalar]) -> list[str]:
    """The settings a message is about.

    Source: "#/Attributes/ProcX2Apic" in RelatedProperties; the name as an argument; OpenBMC's
    PropertyValueNotInList, which names the setting where the value should stand.
    """
    told = {place.rsplit("/", 1)[-1].split("@", 1)[0] for place in message.about}
    told.update(message.arguments)
    told.update(argument.rsplit("/", 1)[-1] for argument in message.arguments)
    found = [name for name in names if name in told]
    if found:
        return found
    words = set(re.findall(r"[^\s'\",:;()\[\]{}]+", message.text))
    stripped = {word.rstrip(".").rsplit("/", 1)[-1] for word in words}
    return [name for name in names if name in stripped or f"'{name}'" in message.text]


class _Stager:
    def __init__(self, connection: Connection, settings: BiosSettings, bios_password: str) -> None:
        self._connection = connection
        self._settings = settings
        self._bios_password = bios_password
        self._headers: dict[str, str] = {}
        self._apply_time = ON_RESET if ON_RESET in settings.apply_times else ""
        self._done = Staged()
        self._unsure = False

    def stage(self, changes: Mapping[str, Scalar]) -> Staged:
        left = dict(changes)
        while left:
            try:
                answer = self._sent(left)
            except Refused as error:
                bad = self._bad(error, left)
                if not bad:
                    raise
                self._done.refused.update(bad)
                # Each round leaves some out, so it ends.
                left = {name: value for name, value in left.items() if name not in bad}
                continue
            self._take(answer, left)
            return self._done
        self._done.declined = not self._unsure
        return self._done

    def _take(self, answer: Answer, sent: Mapping[str, Scalar]) -> None:
        for message in answer.messages:
            if message.severity.lower() in _FINE or message.key in _GOOD_KEYS:
                continue
            # Source: dell/iDRAC-Redfish-Scripting#189: 200, with the settings it did not take.
            for name in named_in(message, sent):
                self._done.refused[name] = str(message)
        self._done.accepted = {name: value for name, value in sent.items() if name not in self._done.refused}
        self._done.job = answer.location
        self._done.applied_on_reset = bool(self._apply_time)

    def _bad(self, error: Refused, left: Mapping[str, Scalar]) -> dict[str, str]:
        # The licence, the lockdown and the password are about all of them.
        if type(error) is not Refused:
            return {}
        return {name: str(message) for message in error.messages for name in named_in(message, left)}

    def _sent(self, changes: Mapping[str, Scalar]) -> Answer:
        try:
            return self._written(changes)
        except PasswordNeeded:
            if not self._bios_password or self._headers:
                raise
            # Source: HPE iLO REST API, "BIOS admin password": the digest in upper case.
            digest = hashlib.sha256(self._bios_password.encode()).hexdigest().upper()
            self._headers = {_PASSWORD_HEADER: digest}
            return self._written(changes)
        except Refused as error:
            if type(error) is not Refused:
                raise
            if any(_COMMITTED.search(f"{one.id} {one.text}") for one in error.messages):
                raise Committed(
                    error.message,
                    uri=error.uri,
                    status=error.status,
                    messages=error.messages,
                    after_lost_answer=error.after_lost_answer,
                    hint="one configuration at a time: let it take effect, or clear it on the BMC",
                ) from error
            if self._apply_time and _about_apply_time(error):
                # Source: Lenovo XCC, which advertises OnReset and knows no such property; iDRAC 3.15.
                self._apply_time = ""
                return self._written(changes)
            raise

    def _written(self, changes: Mapping[str, Scalar]) -> Answer:
        body = self._settings.body(changes, apply_time=self._apply_time)
        try:
            return write_settings(self._connection, self._settings, body, extra_headers=self._headers or None)
        except RedfishError as error:
            # A 5xx may come of a write that was carried out, as may an answer that never came.
            self._unsure = self._unsure or error.after_lost_answer or not 400 <= error.status < 500
            error.after_lost_answer = self._unsure
            raise


def _about_apply_time(error: Refused) -> bool:
    return any(
        "ApplyTime" in " ".join((one.id, one.text, *one.arguments, *one.about)) for one in error.messages
    )
