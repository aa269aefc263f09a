"""A BMC of a few lines, behind the transport: what it answers is told request by request."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import httpx

from nodeprep.bmc.redfish.connection import Connection
from nodeprep.bmc.redfish.patience import Clock
from nodeprep.bmc.target import BmcTarget

SECRET = "correct-horse"
TARGET = BmcTarget("node01", "redfish", "bmc.test", 443, "admin", SECRET)
SESSIONS = "/redfish/v1/SessionService/Sessions"
ROOT = {
    "@odata.id": "/redfish/v1/",
    "RedfishVersion": "1.15.0",
    "Systems": {"@odata.id": "/redfish/v1/Systems"},
}

Script = Callable[[httpx.Request], httpx.Response | Exception | None]


class FakeClock(Clock):
    """Pauses take no time, and are remembered."""

    def __init__(self) -> None:
        super().__init__()
        self.time = 0.0
        self.pauses: list[float] = []

    def now(self) -> float:
        return self.time

    def wait(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.time += seconds


class FakeBmc:
    """Serves resources, opens and ends sessions; `script` may answer first.

    Attributes:
        requests: All that came, in their order.
        sessions: Those that are open, by URI.
        connections: How many transports were made.
    """

    def __init__(self, resources: Mapping[str, Any] | None = None, script: Script | None = None) -> None:
        self.resources = {"/redfish/v1": ROOT, **(resources or {})}
        self.script = script
        self.requests: list[httpx.Request] = []
        self.sessions: dict[str, str] = {}
        self.opened = 0
        self.connections = 0
        self.clock = FakeClock()

    def connection(self, **options: Any) -> Connection:
        options.setdefault("clock", self.clock)
        return Connection(options.pop("target", TARGET), transport=self._transport, **options)

    def asked(self, method: str, path: str = "") -> list[httpx.Request]:
        """Requests of a method, on a path; the login apart."""
        return [
            request
            for request in self.requests
            if request.method == method
            and (request.url.path == path if path else not request.url.path.startswith(SESSIONS))
        ]

    def _transport(self) -> httpx.BaseTransport:
        self.connections += 1
        return httpx.MockTransport(self._handle)

    def _handle(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        scripted = self.script(request) if self.script else None
        if isinstance(scripted, Exception):
            raise scripted
        return scripted or self._serve(request)

    def _serve(self, request: httpx.Request) -> httpx.Response:
        path = request.url.path
        if request.method == "POST" and path == SESSIONS:
            return self._open(json.loads(request.content))
        if request.method == "DELETE" and path in self.sessions:
            del self.sessions[path]
            return httpx.Response(204)
        if path.rstrip("/") != "/redfish/v1" and not self._known(request):
            return error(401, "Base.1.15.NoValidSession", "There is no valid session")
        if request.method == "GET":
            body = self.resources.get(path, self.resources.get(path.rstrip("/")))
            return error(404, "Base.1.15.ResourceMissingAtURI", path) if body is None else answer(body)
        return httpx.Response(204)

    def _open(self, body: Mapping[str, str]) -> httpx.Response:
        if (body.get("UserName"), body.get("Password")) != ("admin", SECRET):
            return error(401, "Base.1.15.InsufficientPrivilege", f"no such login: {body.get('Password')}")
        self.opened += 1
        uri = f"{SESSIONS}/{self.opened}"
        self.sessions[uri] = f"token{self.opened}"
        return httpx.Response(201, headers={"X-Auth-Token": self.sessions[uri], "Location": uri}, json={})

    def _known(self, request: httpx.Request) -> bool:
        token = request.headers.get("x-auth-token")
        return token in self.sessions.values() or "authorization" in request.headers


def answer(body: Any, status: int = 200, **headers: str) -> httpx.Response:
    return httpx.Response(
        status, headers={name.replace("_", "-"): text for name, text in headers.items()}, json=body
    )


def error(status: int, key: str, text: str = "", **headers: str) -> httpx.Response:
    info = [{"MessageId": key, "Message": text}]
    return answer({"error": {"code": key, "message": text, "@Message.ExtendedInfo": info}}, status, **headers)
