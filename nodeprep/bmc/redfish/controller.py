"""A BMC that is spoken to over Redfish; each call is one operation with its own time."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from types import TracebackType

from nodeprep.bmc.event_log import LogMark, LogNews
from nodeprep.bmc.identity import BmcIdentity
from nodeprep.bmc.power import PowerAction, PowerState
from nodeprep.bmc.redfish import logs, power
from nodeprep.bmc.redfish.connection import Connection
from nodeprep.bmc.redfish.identity import identity
from nodeprep.bmc.redfish.sensors import read_sensors
from nodeprep.bmc.redfish.service import Service, read_service, read_system
from nodeprep.bmc.target import BmcTarget
from nodeprep.model.bmc import BmcSensors


class RedfishController:
    """See `nodeprep.bmc.controller.Controller`. A context manager: entering logs in, leaving logs out.

    Args:
        connect_s: For each request of the login, and of any other one at most.
        operation_s: For all requests of one call together.
        connection: In place of one of its own; for tests.
    """

    def __init__(
        self,
        target: BmcTarget,
        *,
        connect_s: float,
        operation_s: float,
        cancelled: threading.Event | None = None,
        connection: Connection | None = None,
    ) -> None:
        self._operation_s = operation_s
        self._connection = connection or Connection(target, patience_s=connect_s, cancelled=cancelled)
        self._service: Service | None = None

    def __enter__(self) -> RedfishController:
        self._connection.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.__exit__(kind, error, trace)

    def power_state(self) -> PowerState:
        """Power, and the faults of its supply."""
        # The system alone, and not its chassis and manager: recovery looks once a second.
        with self._begun() as connection:
            return power.power_state(read_system(connection))

    def set_power(self, action: PowerAction) -> bool:
        """Sends the command once; whether it was acknowledged."""
        with self._begun() as connection:
            return power.control(connection, read_system(connection), action)

    def log_mark(self) -> LogMark:
        """The present end of the event logs."""
        with self._begun() as connection:
            return logs.mark(connection, self._of(connection))

    def log_since(self, mark: LogMark) -> LogNews:
        """What the event logs recorded after a mark."""
        with self._begun() as connection:
            return logs.since(connection, self._of(connection), mark)

    def identity(self) -> BmcIdentity:
        """Who the BMC is."""
        with self._begun() as connection:
            return identity(self._of(connection))

    def sensors(self) -> BmcSensors:
        """What the BMC measures."""
        with self._begun() as connection:
            return read_sensors(connection, self._of(connection))

    @contextlib.contextmanager
    def _begun(self) -> Iterator[Connection]:
        with self._connection.within(self._operation_s):
            yield self._connection

    def _of(self, connection: Connection) -> Service:
        if self._service is None:
            self._service = read_service(connection)
        return self._service
