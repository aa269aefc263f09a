"""One simulated BMC: a request goes in, an answer comes out."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import unquote

import msgspec

from nodeprep.sim.bmc.actions import Actions
from nodeprep.sim.bmc.dump import ROOT, Dump, plain
from nodeprep.sim.bmc.faults import with_faults
from nodeprep.sim.bmc.gate import Gate
from nodeprep.sim.bmc.host import Host
from nodeprep.sim.bmc.jobs import BIOS_JOB
from nodeprep.sim.bmc.messages import JSON, Message, Refused, error_response
from nodeprep.sim.bmc.staging import Staging, body_of
from nodeprep.sim.bmc.state import State
from nodeprep.sim.bmc.tree import Tree, session_body
from nodeprep.sim.bmc.vendors import conduct_of
from nodeprep.sim.bmc.wire import Link, Request, Response

# Redfish opens these to everybody.
_OPEN = frozenset({"/redfish", ROOT, f"{ROOT}/odata", f"{ROOT}/$metadata"})


class SimulatedBmc:
    """A BMC that behaves as the one a dump was taken from.

    Args:
        dump: Shared and never changed; two BMCs over one dump know nothing of each other.
        faults: Names from nodeprep.sim.bmc.faults.FAULTS.
        clock: Seconds, growing; a test can turn it forward.
        post_s: Length of the host's POST.
        host: The host behind it; by default one that only takes its time.
        serial: Serial number of the system, in place of the dump's.
        on_reset: Called with the ResetType of every reset that the default host takes.
        on_staged: Called with the BIOS settings whenever some are staged.
        on_promoted: Called with the BIOS settings that came into force.

    Raises:
        UsageError: An unknown fault.
    """

    def __init__(
        self,
        dump: Dump,
        *,
        user: str,
        password: str,
        faults: Sequence[str] = (),
        clock: Callable[[], float] = time.monotonic,
        post_s: float = 2.0,
        host: Host | None = None,
        serial: str = "",
        on_reset: Callable[[str], None] | None = None,
        on_staged: Callable[[Mapping[str, Any]], None] | None = None,
        on_promoted: Callable[[Mapping[str, Any]], None] | None = None,
    ) -> None:
        self.conduct = with_faults(conduct_of(dump), faults)
        self.state = State(
            dump,
            self.conduct,
            user=user,
            password=password,
            clock=clock,
            post_s=post_s,
            host=host,
            serial=serial,
            on_reset=on_reset,
            on_staged=on_staged,
            on_promoted=on_promoted,
        )
        self._tree = Tree(self.state)
        self._staging = Staging(self.state, self._tree)
        self._actions = Actions(self.state, self._tree)
        self._gate = Gate(self.conduct)
        self._base = self.conduct.base

    def handle(self, request: Request) -> Response:
        """The answer to a request; never raises for what a client sends."""
        self.state.advance()
        try:
            link = self._gate.before(request, ready=self.state.clock() >= self.state.ready_at)
            if link is not Link.DELIVER:
                return Response(0, link=link)
            answer = self._answer(request)
        except Refused as refused:
            answer = error_response(refused, self.conduct.tree.errors)
        link = self._gate.after(request)
        delay_s = self.conduct.link.delay_s
        if link is Link.DELIVER and not delay_s:
            return answer
        return Response(answer.status, answer.headers, answer.body, link, delay_s)

    def _answer(self, request: Request) -> Response:
        path = plain(request.path)
        if request.method == "POST" and path == self._tree.sessions:
            return self._log_in(request)
        if path not in _OPEN:
            self._authenticate(request)
        if path == "/redfish":
            return Response(200, JSON, msgspec.json.encode({"v1": f"{ROOT}/"}))
        if self._actions.known(path):
            if request.method != "POST":
                raise self._not_allowed("POST")
            return self._actions.run(path, request)
        entries = self.state.logs.body(path, unquote(request.query)) if request.method == "GET" else None
        if entries is not None:
            return Response(200, JSON, msgspec.json.encode(entries))
        uri = self._tree.find(path)
        if uri is None:
            raise self._missing(path)
        self._redirect(uri, request.path)
        return self._of_resource(uri, request)

    def _of_resource(self, uri: str, request: Request) -> Response:
        if request.method in ("GET", "HEAD"):
            takes_gzip = "gzip" in request.headers.get("accept-encoding", "")
            found = self._tree.get(uri, compressed=takes_gzip)
            if found is not None and "$expand" in unquote(request.query):
                found = self._tree.expanded(found)
            if found is None:
                raise self._missing(request.path)
            return found
        if request.method in ("PATCH", "PUT"):
            return self._change(uri, request)
        if request.method == "POST" and uri in self._tree.job_places:
            return self._make_job(request)
        if request.method == "DELETE":
            return self._delete(uri)
        raise self._not_allowed("GET, HEAD")

    def _authenticate(self, request: Request) -> None:
        sessions = self.state.sessions
        if self.conduct.login.open:
            return
        token = request.headers.get("x-auth-token")
        if token is not None:
            if sessions.by_token(token) is not None:
                return
            raise self._no_session("The session is gone, or never was.", "NoValidSession")
        header = request.headers.get("authorization", "")
        if not sessions.basic(header):
            key = "InsufficientPrivilege" if header else "NoValidSession"
            raise self._no_session("While accessing the resource, a valid login was missing.", key)

    def _no_session(self, text: str, key: str) -> Refused:
        challenge = {"WWW-Authenticate": 'Basic realm="BMC"'} if self.conduct.login.basic else {}
        return Refused(401, (Message(f"{self._base}.{key}", text, severity="Critical"),), challenge)

    def _log_in(self, request: Request) -> Response:
        if not self.conduct.login.sessions:
            raise self._missing(request.path)
        body = body_of(request, self._base)
        if not self.state.sessions.fits(body.get("UserName"), body.get("Password")):
            raise self._no_session("User name or password is wrong.", "ResourceAtUriUnauthorized")
        session = self.state.sessions.open()
        if session is None:
            if self.conduct.vendor == "dell":
                text = "The maximum number of user sessions is reached."
                raise Refused(503, (Message(f"{self.conduct.oem}.RAC0218", text, severity="Critical"),))
            text = "The session limit has been exceeded; close a session before opening another."
            raise Refused(503, (Message(f"{self._base}.SessionLimitExceeded", text, severity="Critical"),))
        headers = {"X-Auth-Token": session.token, "Location": f"{self._tree.sessions}/{session.id}"}
        made = session_body(self._tree.sessions, session.id, session.user)
        return Response(201, {**JSON, **headers}, msgspec.json.encode(made))

    def _redirect(self, uri: str, path: str) -> None:
        tree = self.conduct.tree
        if tree.redirect_abroad and self._tree.bios and uri.startswith(self._tree.bios):
            raise Refused(308, self._moved(), {"Location": f"https://other-bmc.invalid{path}"})
        named = self._tree.named(uri)
        if tree.slash_redirect and named.endswith("/") and not path.endswith("/") and uri != ROOT:
            raise Refused(308, self._moved(), {"Location": f"{path}/"})

    def _moved(self) -> tuple[Message, ...]:
        return (Message(f"{self._base}.ResourceMoved", "The resource has another URI."),)

    def _change(self, uri: str, request: Request) -> Response:
        tree, staging = self._tree, self.conduct.staging
        takes = uri == tree.settings or (uri == tree.bios and self._bios_takes)
        if not takes or request.method not in staging.methods:
            methods = ", ".join(staging.methods) if takes else ""
            raise self._not_allowed(f"GET, HEAD, {methods}".rstrip(", "))
        return self._staging.change(uri, request)

    @property
    def _bios_takes(self) -> bool:
        """Whether the Bios resource itself takes settings."""
        nothing_else = self.state.settings_uri is None
        return self.conduct.tree.settings and (self.conduct.staging.on_current or nothing_else)

    def _make_job(self, request: Request) -> Response:
        target = body_of(request, self._base).get("TargetSettingsURI")
        if not isinstance(target, str) or plain(target) != self._tree.settings:
            text = "The property TargetSettingsURI must name the settings resource."
            raise Refused(
                400, (Message(f"{self._base}.PropertyValueNotInList", text, ("TargetSettingsURI",)),)
            )
        self._staging.must_be_free()
        if not self.state.settings.waiting:
            text = "No pending data present to create a configuration job."
            raise Refused(400, (Message(f"{self.conduct.oem}.SYS055", text),))
        return self._staging.schedule(200)

    def _delete(self, uri: str) -> Response:
        parent, _, name = uri.rpartition("/")
        if parent == self._tree.sessions:
            session = self.state.sessions.by_id(name)
            if session is None:
                raise self._missing(uri)
            self.state.sessions.close(session)
            return Response(204)
        job = self.state.jobs.get(name) if parent in self._tree.job_places else None
        if job is None:
            raise self._not_allowed("GET, HEAD")
        if job.state == "Running":
            text = "The job is running and cannot be deleted."
            raise Refused(400, (Message(f"{self.conduct.oem}.SUP027", text),))
        if job.open and job.kind == BIOS_JOB:
            self.state.settings.clear()
        self.state.jobs.delete(job)
        return Response(204)

    def _missing(self, path: str) -> Refused:
        text = f"The resource at the URI {path} was not found."
        return Refused(
            404, (Message(f"{self._base}.ResourceMissingAtURI", text, (path,), severity="Critical"),)
        )

    def _not_allowed(self, methods: str) -> Refused:
        text = "The HTTP method is not allowed on this resource."
        message = Message(f"{self._base}.OperationNotAllowed", text, severity="Critical")
        return Refused(405, (message,), {"Allow": methods})
