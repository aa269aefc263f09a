"""The host's power over Redfish: its state, and resets of the types that the BMC has."""

from __future__ import annotations

from collections.abc import Mapping

from nodeprep.bmc.failures import BmcRefused
from nodeprep.bmc.power import PowerAction, PowerState
from nodeprep.bmc.redfish.connection import Connection
from nodeprep.bmc.redfish.errors import AnswerLost, Malformed
from nodeprep.bmc.redfish.reset import reset_target, reset_types
from nodeprep.bmc.redfish.resource import Resource

# Source: DSP2046, ComputerSystem.PowerState. A host on its way off still has power, as one that is paused.
_STATES: Mapping[str, bool] = {
    "on": True,
    "poweringon": True,
    "poweringoff": True,
    "paused": True,
    "off": False,
}
# Not FullPowerCycle in place of PowerCycle: it cuts the mains, and the BMC with it for minutes.
# PushPowerButton is a toggle, and used only where nothing else switches a host on that is seen to be off.
_TYPES: Mapping[PowerAction, tuple[str, ...]] = {
    "on": ("On", "ForceOn", "PushPowerButton"),
    "off": ("ForceOff",),
    "cycle": ("PowerCycle",),
    "reset": ("ForceRestart",),
}


def power_state(system: Resource) -> PowerState:
    """Whether the host has power. Redfish knows no reason of the last start.

    Raises:
        Missing: The BMC does not say.
        Malformed: It says what is no state of a host's power.
    """
    word = system.get(str, "PowerState")
    on = _STATES.get(word.lower())
    if on is None:
        raise Malformed(f"{system.uri}: {word!r} is no state of power", uri=system.uri, path="PowerState")
    return PowerState(on=on)


def control(connection: Connection, system: Resource, action: PowerAction) -> bool:
    """Sends a reset of the host, once; whether the BMC acknowledged it.

    Raises:
        BmcRefused: By the BMC, which may not have such a type of reset, or because the host is off.
        NotReady: The BMC said "later" until the time was over, and did nothing.
    """
    on = power_state(system).on
    if action in ("cycle", "reset") and not on:
        raise BmcRefused(f"cannot {action} a host whose power is off", hint="switch it on")
    types = reset_types(connection, system)
    word = next((one for one in _TYPES[action] if one in types), "")
    if not word or (word == "PushPowerButton" and on):
        raise BmcRefused(
            f"the {connection.target} has no type of reset to {action} a host: {', '.join(types)}"
        )
    try:
        connection.post(reset_target(system), {"ResetType": word})
    except AnswerLost:
        return False
    return True
