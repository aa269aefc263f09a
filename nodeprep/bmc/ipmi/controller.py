"""A BMC that is spoken to over IPMI; each call is one operation with its own time."""

from __future__ import annotations

from nodeprep.bmc.event_log import LogMark, LogNews
from nodeprep.bmc.identity import BmcIdentity
from nodeprep.bmc.ipmi import power, sel
from nodeprep.bmc.ipmi.identity import identity
from nodeprep.bmc.ipmi.sensors import sensors_of
from nodeprep.bmc.ipmi.session import IpmiSession
from nodeprep.bmc.power import PowerAction, PowerState
from nodeprep.model.bmc import BmcSensors


class IpmiController:
    """See `nodeprep.bmc.controller.Controller`."""

    def __init__(self, session: IpmiSession) -> None:
        self._session = session

    def power_state(self) -> PowerState:
        """Power, faults and the reason of the last start."""
        return power.chassis_status(self._begun())

    def set_power(self, action: PowerAction) -> bool:
        """Sends the command once; whether it was acknowledged."""
        return power.control(self._begun(), action)

    def log_mark(self) -> LogMark:
        """The present end of the event log."""
        return sel.mark(self._begun())

    def log_since(self, mark: LogMark) -> LogNews:
        """What the event log recorded after a mark."""
        return sel.since(self._begun(), mark)

    def identity(self) -> BmcIdentity:
        """Who the BMC is."""
        return identity(self._begun())

    def sensors(self) -> BmcSensors:
        """What the BMC measures."""
        return sensors_of(self._begun().sensors())

    def _begun(self) -> IpmiSession:
        self._session.begin()
        return self._session
