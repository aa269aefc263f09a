"""Restarts the host: off as the operating system wants it, else by force, and on again.

Off and on, and not a restart: that the host went off can be seen on every BMC, that it restarted on few.
And on some boards a forced restart hangs where off, a pause and on do not (Lenovo SR675 V3).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from nodeprep.bmc.redfish.connection import Connection
from nodeprep.bmc.redfish.errors import AnswerLost, NotReady, RedfishError, Refused
from nodeprep.bmc.redfish.patience import Clock
from nodeprep.bmc.redfish.post import power_now
from nodeprep.bmc.redfish.resource import Resource, own_path
from nodeprep.bmc.redfish.service import Service

ACTION = "#ComputerSystem.Reset"
GRACEFUL_S = 180.0
_POLL_S = 2.0
_OFF_S = 90.0
_ON_S = 60.0
# Source: Lenovo SR675 V3, where an On too soon after the host went off is lost.
_PAUSE_S = 10.0
_TRIES = 3
_LOST_S = 10.0
# For an action: what is refused in POST or by a busy BMC comes again, and not for long.
_ACT_S = 60.0
# What nearly every BMC has, for one that lists none.
_USUAL = ("On", "ForceOff", "GracefulShutdown", "ForceRestart")
_OFF_BY_FORCE = ("ForceOff",)
_ON_WORDS = ("On", "ForceOn")
_LEADS_TO: Mapping[str, str] = {
    "GracefulShutdown": "Off",
    "ForceOff": "Off",
    "On": "On",
    "ForceOn": "On",
}
_RESTARTS = ("GracefulRestart", "ForceRestart", "PowerCycle", "FullPowerCycle")


class ResetFailed(RedfishError):
    """The host did not do as it was told."""


@dataclass(slots=True)
class Reset:
    """What was done.

    Attributes:
        sent: Types of reset, in their order.
        forced: The operating system did not go by itself.
    """

    sent: list[str] = field(default_factory=list)
    forced: bool = False


def reset_types(connection: Connection, system: Resource) -> tuple[str, ...]:
    """The types of reset a BMC has; those that nearly all have when it does not say.

    Raises:
        BmcUnreachable: No answer.
    """
    action = _action(system)
    listed = action.get("ResetType@Redfish.AllowableValues")
    if not isinstance(listed, list):
        info = own_path(action.get("@Redfish.ActionInfo"))
        listed = _from_info(connection, info) if info else None
    found = tuple(one for one in listed if isinstance(one, str)) if isinstance(listed, list) else ()
    return found or _USUAL


def reset_target(system: Resource) -> str:
    """Where a reset is sent; the usual place when the system names none."""
    usual = f"{system.uri.rstrip('/')}/Actions/ComputerSystem.Reset"
    return own_path(_action(system).get("target")) or usual


class Restart:
    """One restart of a host.

    Args:
        graceful_s: How long the operating system may take to go off.
        ends_at: By the clock.
    """

    def __init__(
        self,
        connection: Connection,
        service: Service,
        *,
        graceful_s: float = GRACEFUL_S,
        ends_at: float,
        clock: Clock,
        notify: Callable[[str], None],
    ) -> None:
        self._connection = connection
        self._uri = service.system.uri
        self._target = reset_target(service.system)
        self._types = reset_types(connection, service.system)
        self._graceful_s = graceful_s
        self._ends_at = ends_at
        self._clock = clock
        self._notify = notify
        self.done = Reset()

    def run(self) -> Reset:
        """Restarts it; a host that is off is switched on.

        Raises:
            ResetFailed: It stays on, or off.
            RedfishError: Resets are refused.
            BmcUnreachable: No answer.
            Interrupted: Broken off.
        """
        can_switch_on = any(word in self._types for word in _ON_WORDS)
        if self._power() == "Off":
            self._on()
            return self.done
        if not can_switch_on or not {"GracefulShutdown", *_OFF_BY_FORCE} & set(self._types):
            self._restart_only()
            return self.done
        if not self._off_gracefully():
            self._off_by_force()
        self._clock.wait(_PAUSE_S)
        self._on()
        return self.done

    def _off_gracefully(self) -> bool:
        if "GracefulShutdown" not in self._types:
            return False
        self._notify("asking the operating system to shut down")
        if not self._try("GracefulShutdown"):
            return False
        return self._seen("Off", self._graceful_s)

    def _off_by_force(self) -> None:
        self.done.forced = True
        if "ForceOff" not in self._types:
            raise self._failure("the host did not go off, and its BMC has no ForceOff")
        self._notify("it does not go by itself: switching off")
        for _ in range(_TRIES):
            # Off twice is off: a command that was lost may be sent again.
            self._act("ForceOff")
            if self._seen("Off", _OFF_S):
                return
        raise self._failure(f"the host is still on {_OFF_S:.0f} s after ForceOff")

    def _on(self) -> None:
        word = next((word for word in _ON_WORDS if word in self._types), "PushPowerButton")
        for _ in range(_TRIES):
            self._notify("switching on")
            self._try(word)
            if self._seen("On", _ON_S):
                return
            self._clock.wait(_PAUSE_S)
        raise self._failure(f"the host stays off after {_TRIES} times {word}")

    def _restart_only(self) -> None:
        usable = [word for word in _RESTARTS if word in self._types]
        if not usable:
            raise self._failure(f"the BMC has no type of reset to restart a host: {', '.join(self._types)}")
        for word in usable:
            self._notify(f"restarting ({word})")
            if self._try(word):
                self.done.forced = word != "GracefulRestart"
                return
        raise self._failure("every type of restart was refused")

    def _try(self, word: str) -> bool:
        """Whether it was taken, or may have been."""
        try:
            self._act(word)
        except Refused:
            return False
        except NotReady:
            # HPE in POST, for example: not now.
            return False
        return True

    def _act(self, word: str) -> None:
        for _ in range(_TRIES):
            self.done.sent.append(word)
            try:
                self._connection.post(self._target, {"ResetType": word}, patience_s=_ACT_S)
            except AnswerLost:
                # Carried out or not: the power state tells, of those that lead to one. They may come twice.
                state = _LEADS_TO.get(word)
                if state is None or self._seen(state, _LOST_S):
                    return
            else:
                return

    def _seen(self, state: str, seconds: float) -> bool:
        until = min(self._clock.now() + seconds, self._ends_at)
        while True:
            if self._power() == state:
                return True
            if self._clock.now() + _POLL_S >= until:
                return False
            self._clock.wait(_POLL_S)

    def _power(self) -> str:
        return power_now(self._connection, self._uri)

    def _failure(self, message: str) -> ResetFailed:
        return ResetFailed(
            f"{message} ({self._connection.target})",
            uri=self._target,
            hint="what is staged stays staged: look at the host's console, then run the same again",
        )


def _action(system: Resource) -> Mapping[str, Any]:
    actions = system.body.get("Actions")
    action = actions.get(ACTION) if isinstance(actions, Mapping) else None
    return action if isinstance(action, Mapping) else {}


def _from_info(connection: Connection, uri: str) -> list[Any] | None:
    try:
        parameters = connection.get(uri).body.get("Parameters")
    except RedfishError:
        return None
    for parameter in parameters if isinstance(parameters, list) else []:
        if isinstance(parameter, Mapping) and parameter.get("Name") == "ResetType":
            listed = parameter.get("AllowableValues")
            return listed if isinstance(listed, list) else None
    return None
