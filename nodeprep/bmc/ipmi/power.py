"""Chassis power over IPMI. Source: IPMI 2.0, 28.2 Get Chassis Status, 28.3 Chassis Control, 28.11."""

from __future__ import annotations

from collections.abc import Mapping

from nodeprep.bmc.failures import BmcRefused, BmcUnreachable
from nodeprep.bmc.ipmi.session import Asking
from nodeprep.bmc.power import PowerAction, PowerState

_CHASSIS = 0x00
_STATUS, _CONTROL, _RESTART_CAUSE = 0x01, 0x02, 0x07
# pyghmi's own set_power has no cycle, and first asks makers' extensions what they think of it.
_ACTIONS: Mapping[PowerAction, int] = {"off": 0, "on": 1, "cycle": 2, "reset": 3}
_FAULTS = {1: "power overload", 2: "power interlock active", 3: "power fault", 4: "power control fault"}
_EVENTS = {
    0: "mains failed",
    1: "power overload",
    2: "power interlock",
    3: "power fault",
    4: "by IPMI command",
}
_CAUSES = {
    1: "chassis control command",
    2: "reset button",
    3: "power button",
    4: "watchdog expired",
    5: "OEM",
    6: "mains returned (always on)",
    7: "mains returned (as before)",
    8: "reset by event filter",
    9: "cycled by event filter",
    10: "soft reset",
    11: "wake-up by clock",
}


def chassis_status(session: Asking) -> PowerState:
    """What the BMC says about the power, with the reason of the last start where the BMC knows it."""
    data = session.command(_CHASSIS, _STATUS)
    if len(data) < 2:
        raise BmcUnreachable(f"a chassis status of {len(data)} bytes is none")
    return PowerState(
        on=bool(data[0] & 1),
        faults=tuple(words for bit, words in _FAULTS.items() if data[0] >> bit & 1),
        last_event=", ".join(words for bit, words in _EVENTS.items() if data[1] >> bit & 1),
        restart_cause=_restart_cause(session),
    )


def control(session: Asking, action: PowerAction) -> bool:
    """Sends a chassis control command, once; whether the BMC acknowledged it.

    Cycle and reset are refused here for a host that is off: the standard lets a BMC refuse, switch
    on, or acknowledge and do nothing (OpenIPMI's simulator).

    Raises:
        BmcRefused: By the BMC, or because the host is off.
    """
    if action in ("cycle", "reset") and not chassis_status(session).on:
        raise BmcRefused(f"cannot {action} a host whose power is off", hint="switch it on")
    return session.command_once(_CHASSIS, _CONTROL, [_ACTIONS[action]])


def _restart_cause(session: Asking) -> str:
    try:
        data = session.command(_CHASSIS, _RESTART_CAUSE)
    except BmcRefused:
        # Optional for a BMC.
        return ""
    return _CAUSES.get(data[0] & 0xF, "") if data else ""
