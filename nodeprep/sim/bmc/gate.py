"""What stands before the service: connections that break, a service that is busy or not ready."""

from __future__ import annotations

import email.utils
import time

from nodeprep.sim.bmc.conduct import Conduct
from nodeprep.sim.bmc.dump import ROOT, plain
from nodeprep.sim.bmc.messages import Message, Refused
from nodeprep.sim.bmc.wire import Link, Request

_CHANGES = frozenset({"PATCH", "PUT", "POST", "DELETE"})


class Gate:
    """Counts requests and decides what becomes of each."""

    def __init__(self, conduct: Conduct) -> None:
        self._conduct = conduct
        self._seen = 0
        self._gets = 0
        self._lost = conduct.link.lost_answers

    def before(self, request: Request, *, ready: bool) -> Link:
        """Look at a request before it is carried out; anything but DELIVER and CLOSE means that it is not.

        Raises:
            Refused: The service is busy or not ready.
        """
        self._seen += 1
        link, busy = self._conduct.link, self._conduct.ready.busy_every
        if link.hang:
            return Link.HANG
        if link.reset_after and request.turn >= link.reset_after:
            return Link.RESET
        if _due(self._seen, link.drop_every):
            return Link.DROP
        if _due(self._seen, busy):
            text = "The service is temporarily unavailable. Retry."
            message = Message(f"{self._conduct.base}.ServiceTemporarilyUnavailable", text)
            raise Refused(503, (message,), self._retry_after())
        if not ready and plain(request.path) not in (ROOT, "/redfish"):
            raise self._not_ready()
        return Link.DELIVER

    def after(self, request: Request) -> Link:
        """What becomes of the answer to a request that was carried out."""
        link = self._conduct.link
        if request.method in _CHANGES and self._lost > 0 and not _is_login(request):
            self._lost -= 1
            return Link.DROP
        if request.method == "GET":
            self._gets += 1
            if _due(self._gets, link.half_every):
                return Link.HALF
        return Link.CLOSE if link.close_each else Link.DELIVER

    def _retry_after(self) -> dict[str, str]:
        value = self._conduct.ready.retry_after
        if value == "date":
            value = email.utils.formatdate(time.time() + 1, usegmt=True)
        return {"Retry-After": value} if value else {}

    def _not_ready(self) -> Refused:
        conduct = self._conduct
        if conduct.vendor == "dell":
            text = (
                "The iDRAC is not ready. The configuration values cannot be accessed. Retry after some time."
            )
            message = Message(f"{conduct.oem}.SWC0700", text)
        else:
            text = "The service is not ready: it is still starting. Retry."
            message = Message(f"{conduct.base}.ServiceInUnknownState", text)
        return Refused(conduct.ready.not_ready_status, (message,))


def _is_login(request: Request) -> bool:
    return "/sessions" in request.path.lower()


def _due(number: int, every: int) -> bool:
    return every > 0 and number % every == 0
