"""A simulated BMC behind the client's transport: no network, no waiting, and an end at any request."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx

from nodeprep.bmc.bios import parse_settings
from nodeprep.bmc.redfish.connection import Connection
from nodeprep.bmc.redfish.patience import Clock
from nodeprep.bmc.target import BmcTarget, TlsTrust
from nodeprep.model.bios import BiosApplication, BiosPlan
from nodeprep.sim.bmc import Dump, SimulatedBmc
from nodeprep.sim.bmc.wire import Link, Request
from nodeprep.workflows import bios, bios_apply, bios_work
from nodeprep.workflows.home import Home

SECRET = "correct-horse-4711"
TARGET = BmcTarget("node01", "redfish", "bmc.test", 443, "admin", SECRET, TlsTrust())
_BROKEN: Mapping[Link, type[httpx.TransportError]] = {
    Link.DROP: httpx.ReadError,
    Link.RESET: httpx.ReadError,
    Link.HALF: httpx.RemoteProtocolError,
    Link.HANG: httpx.ReadTimeout,
}


class Killed(BaseException):
    """The process ended here."""


class BenchClock(Clock):
    """Waiting takes no time, and moves the BMC's time."""

    def __init__(self) -> None:
        super().__init__()
        self.time = 1000.0

    def now(self) -> float:
        return self.time

    def wait(self, seconds: float) -> None:
        self.time += seconds


class Bench(httpx.BaseTransport):
    """One BMC, and a controller with its folder.

    Args:
        script: Sees each request first, and may answer it in the BMC's place.

    Attributes:
        requests: Method and path of each request of the present run.
        sent: Bodies of requests that had one.
        kill_at: The number of the request at which the process ends; 0 for never.
        answered: It ends after the BMC has carried the request out, not before.
    """

    def __init__(
        self,
        dump: Dump,
        home: Path,
        *,
        faults: Sequence[str] = (),
        post_s: float = 60.0,
        script: Callable[[str, str], httpx.Response | None] | None = None,
    ) -> None:
        self.clock = BenchClock()
        self.home = Home(home)
        self.resets: list[str] = []
        self.bmc = SimulatedBmc(
            dump,
            user="admin",
            password=SECRET,
            faults=faults,
            clock=lambda: self.clock.time,
            post_s=post_s,
            on_reset=self.resets.append,
        )
        self.script = script
        self.requests: list[tuple[str, str]] = []
        self.headers: list[Mapping[str, str]] = []
        self.sent: list[tuple[str, str, Any]] = []
        self.said: list[str] = []
        self.kill_at = 0
        self.answered = False
        self._turn = 0

    # As a transport

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self._turn += 1
        body = request.read()
        path = request.url.path
        self.requests.append((request.method, path))
        self.headers.append({name.lower(): value for name, value in request.headers.items()})
        if body:
            self.sent.append((request.method, path, json.loads(body)))
        dies = bool(self.kill_at) and len(self.requests) >= self.kill_at
        if dies and not (self.answered and len(self.requests) == self.kill_at):
            raise Killed
        if self.script is not None:
            made = self.script(request.method, path)
            if made is not None:
                return made
        answer = self.bmc.handle(
            Request(request.method, path, self.headers[-1], body, self._turn - 1, request.url.query.decode())
        )
        self.clock.time += 0.1 + answer.delay_s
        if dies:
            raise Killed
        broken = _BROKEN.get(answer.link)
        if broken is not None:
            raise broken("broken by the simulator", request=request)
        return httpx.Response(answer.status, headers=dict(answer.headers), content=answer.body)

    def close(self) -> None:
        self._turn = 0

    # What a user does

    def connect(self, target: BmcTarget) -> Connection:
        """A conversation with this BMC."""
        return Connection(target, clock=self.clock, transport=lambda: self)

    def plan(self, *settings: str) -> BiosPlan:
        """`bios plan`."""
        return bios.plan(TARGET, parse_settings(settings), self.connect)

    def apply(self, *settings: str, **asked: Any) -> BiosApplication:
        """`bios apply --yes`."""
        self._anew()
        return bios_apply.apply(
            bios_work.Asked(TARGET, **asked),
            parse_settings(settings),
            self.home,
            notify=self.said.append,
            connect=self.connect,
            clock=self.clock,
        )

    def rollback(self, restore: Path | None = None, **asked: Any) -> BiosApplication:
        """`bios rollback --yes`."""
        self._anew()
        return bios_apply.rollback(
            bios_work.Asked(TARGET, **asked),
            self.home,
            restore=restore,
            notify=self.said.append,
            connect=self.connect,
            clock=self.clock,
        )

    def _anew(self) -> None:
        self.requests.clear()
        self.headers.clear()
        self.sent.clear()
        self.said.clear()

    @property
    def current(self) -> dict[str, Any]:
        """Values in force."""
        self.bmc.state.advance()
        return dict(self.bmc.state.settings.current)

    @property
    def waiting(self) -> dict[str, Any]:
        """Values that wait."""
        self.bmc.state.advance()
        return dict(self.bmc.state.settings.waiting)

    def patches(self) -> list[Any]:
        """Bodies of the changes that were sent."""
        return [body for method, _, body in self.sent if method in ("PATCH", "PUT")]
