"""What one can ask of a BMC, whatever the protocol: IPMI or Redfish."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Protocol

from nodeprep.bmc.event_log import LogMark, LogNews
from nodeprep.bmc.identity import BmcIdentity
from nodeprep.bmc.ipmi.controller import IpmiController
from nodeprep.bmc.ipmi.session import CONNECT_S, OPERATION_S, IpmiSession
from nodeprep.bmc.power import PowerAction, PowerState
from nodeprep.bmc.redfish.controller import RedfishController
from nodeprep.bmc.target import BmcTarget
from nodeprep.model.bmc import BmcSensors

# Hundreds of commands over IPMI, dozens of resources over Redfish, and slow BMCs.
SENSORS_S = 120.0


class Controller(Protocol):
    """A BMC that is logged in to. Each call ends within the operation's time.

    All raise BmcUnreachable (no answer), BmcRefused (an answer that is a refusal) and Interrupted.
    """

    def power_state(self) -> PowerState:
        """Power, faults and the reason of the last start."""

    def set_power(self, action: PowerAction) -> bool:
        """Sends the command once; False when no acknowledgement came, and the session is then over."""

    def log_mark(self) -> LogMark:
        """The present end of the event log."""

    def log_since(self, mark: LogMark) -> LogNews:
        """What the event log recorded after a mark."""

    def identity(self) -> BmcIdentity:
        """Who the BMC is."""

    def sensors(self) -> BmcSensors:
        """What the BMC measures; give it SENSORS_S."""


@contextlib.contextmanager
def connect(
    target: BmcTarget,
    *,
    cancelled: threading.Event | None = None,
    connect_s: float = CONNECT_S,
    operation_s: float = OPERATION_S,
) -> Iterator[Controller]:
    """Logs in to a BMC, and out at the end of the block.

    Raises:
        BmcLoginRefused: Wrong user or password.
        BmcUnreachable: No answer within `connect_s` seconds.
        Interrupted: `cancelled` was set.
    """
    if target.protocol == "redfish":
        with RedfishController(
            target, connect_s=connect_s, operation_s=operation_s, cancelled=cancelled
        ) as controller:
            yield controller
        return
    session = IpmiSession(target, connect_s=connect_s, operation_s=operation_s, cancelled=cancelled)
    with session:
        yield IpmiController(session)
