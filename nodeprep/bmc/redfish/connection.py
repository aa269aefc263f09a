"""A conversation with one BMC over Redfish: logged in, one request at a time, each bounded in time."""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import math
import threading
from collections.abc import Callable, Iterator, Mapping
from types import TracebackType
from typing import Any

import httpx

from nodeprep.bmc.failures import BmcLoginRefused
from nodeprep.bmc.redfish.answers import Answer, refusal
from nodeprep.bmc.redfish.auth import NO_SESSION_STATUS, Login, Session, basic, sessions_uri
from nodeprep.bmc.redfish.errors import AnswerLost, Malformed, NotReady, PreconditionFailed
from nodeprep.bmc.redfish.etag import read_etag
from nodeprep.bmc.redfish.exchange import READ_S, Exchange, Order
from nodeprep.bmc.redfish.if_match import Undecided, matching
from nodeprep.bmc.redfish.patience import Clock, Patience, retry_after_s
from nodeprep.bmc.redfish.resource import Resource, own_path
from nodeprep.bmc.redfish.wire import WireTransport
from nodeprep.bmc.target import BmcTarget
from nodeprep.errors import NodeprepError, UsageError

ROOT = "/redfish/v1/"
# For one request with all its tries; a busy iDRAC takes 20 s for its BIOS registry.
PATIENCE_S = 120.0
_LOGOUT_S = 5.0
_REFUSED_LOGIN = frozenset({401, 403})
# Also said by a BMC that stumbles once. Only a GET is asked again for it.
_STUMBLES = frozenset({500, 502, 504})
_STUMBLE_TRIES = 3

_log = logging.getLogger(__name__)


class Connection:
    """For one thread. A context manager: entering logs in, leaving logs out, whatever happened.

    Args:
        login: "session" falls back to Basic where the BMC gives none; "basic" never opens one.
        patience_s: For each request, with all its tries.
        cancelled: Set by another thread to break off; the conversation then raises Interrupted.
        notify: Told once that the BMC is busy and is being asked again.
        transport: Makes what carries the requests; for tests.

    Attributes:
        root: The service root.
        login: How the BMC is logged in to.
    """

    def __init__(
        self,
        target: BmcTarget,
        *,
        login: Login = "session",
        patience_s: float = PATIENCE_S,
        clock: Clock | None = None,
        cancelled: threading.Event | None = None,
        notify: Callable[[str], None] = lambda _: None,
        transport: Callable[[], httpx.BaseTransport] | None = None,
    ) -> None:
        if target.protocol != "redfish":
            raise UsageError(f"the {target} is not to be spoken to over Redfish")
        self.target = target
        self.login: Login = login
        self.root = Resource(ROOT, {})
        self._patience_s = patience_s
        self._notify: Callable[[str], None] | None = notify
        self._clock = clock or Clock(cancelled)
        self._session: Session | None = None
        self._ends_at = math.inf
        # The event, and not the clock, whose place another one takes at logout.
        self._broken_off = self._clock.cancelled
        self._exchange = Exchange(
            target, self._clean, transport or (lambda: WireTransport(target, self._broken_off))
        )

    @property
    def trust(self) -> str:
        """How the BMC proved who it is, in words for a report."""
        return str(self.target.tls)

    def __enter__(self) -> Connection:
        """Reads the service root and logs in.

        Raises:
            NotTrusted: Its certificate is refused.
            BmcLoginRefused: Wrong user or password.
            BmcUnreachable: No answer.
            RedfishError: It answers, and does not speak Redfish.
            Interrupted: Broken off.
        """
        try:
            self._read_root()
            self._log_in()
            if not self.root.body:
                self.root = _service_root(self.get(ROOT))
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    @contextlib.contextmanager
    def within(self, seconds: float) -> Iterator[None]:
        """All requests of the block together take at most so long; what comes too late is BmcUnreachable."""
        before, self._ends_at = self._ends_at, self._clock.now() + seconds
        try:
            yield
        finally:
            self._ends_at = before

    def get(self, uri: str, *, patience_s: float | None = None) -> Resource:
        """Reads a resource.

        Raises:
            Missing: There is none.
            RedfishError: Refused, or not a resource.
            NotReady: The BMC said "later" until the patience was over.
            BmcUnreachable: No answer.
            Interrupted: Broken off.
        """
        return _resource(self._good(self._request(Order("GET", uri), patience_s)), uri)

    def patch(
        self,
        uri: str,
        body: Mapping[str, Any],
        *,
        etag_from: Resource | None = None,
        extra_headers: Mapping[str, str] | None = None,
        patience_s: float | None = None,
    ) -> Answer:
        """Changes a resource.

        Args:
            etag_from: The settings resource as it was read, on which the change was decided. Its ETag goes
                into If-Match, in the forms of `etag.candidates` until one is taken.

        Raises:
            PreconditionFailed: It changed since it was read, or no form of its ETag is taken.
            RedfishError: Refused, or it is missing.
            NotReady: The BMC said "later" until the patience was over.
            BmcUnreachable: No answer.
            Interrupted: Broken off.
        """

        def send(if_match: str) -> Answer:
            headers = dict(extra_headers or {})
            if if_match:
                headers["If-Match"] = if_match
            return self._request(Order("PATCH", uri, body, headers), patience_s)

        try:
            return self._good(matching(send, body, etag_from, self.get))
        except Undecided as undecided:
            raise self._precondition(undecided) from None

    def put(self, uri: str, body: Mapping[str, Any], *, patience_s: float | None = None) -> Answer:
        """Replaces a settings resource: old AMI firmware has no PATCH there. Never sends If-Match."""
        return self._good(self._request(Order("PUT", uri, body), patience_s))

    def post(self, uri: str, body: Mapping[str, Any], *, patience_s: float | None = None) -> Answer:
        """Carries out an action, once. Never sends If-Match.

        Source: stmcginnis/gofish#510: iDRAC 10 answers 412 to an action with If-Match.

        Raises:
            AnswerLost: It may have been carried out, or not.
            RedfishError: Refused, or there is no such action.
            NotReady: The BMC said "later" until the patience was over, and did nothing.
            BmcUnreachable: No connection.
            Interrupted: Broken off.
        """
        return self._good(self._request(Order("POST", uri, body, once=True), patience_s))

    def delete(self, uri: str, *, patience_s: float | None = None) -> Answer:
        """Deletes a resource; raises as `patch`."""
        return self._good(self._request(Order("DELETE", uri), patience_s))

    # Login

    def _read_root(self) -> None:
        answer = self._patiently(Order("GET", ROOT), self._patience_s)
        if answer.status == 401:
            # Against the specification, and seen: even the root wants a login.
            return
        self.root = _service_root(_resource(self._good(answer), ROOT))

    def _log_in(self) -> None:
        if self.login == "session" and not self._open_session():
            _log.info("%s gives no session, so each request carries the login", self.target)
            self.login = "basic"

    def _open_session(self) -> bool:
        """Whether there is a session now. Tried once: BMCs lock users out."""
        self._session = None
        body = {"UserName": self.target.user, "Password": self.target.password}
        order = Order("POST", sessions_uri(self.root), body, once=True)
        try:
            answer = self._exchange.carry(order, Patience(self._clock, min(self._patience_s, READ_S)))
        except AnswerLost:
            # There may be a session whose name nobody knows; a second try could leave another.
            return False
        if answer.status in _REFUSED_LOGIN:
            raise self._no_login(answer)
        if answer.status in NO_SESSION_STATUS:
            return False
        self._good(answer)
        token = answer.headers.get("x-auth-token", "")
        uri = answer.location or own_path(answer.body.get("@odata.id"))
        if not token or not token.isascii() or not uri:
            return False
        self._session = Session(uri, token)
        return True

    def _no_login(self, answer: Answer) -> BmcLoginRefused:
        return BmcLoginRefused(
            f"the {self.target} does not let user {self.target.user!r} in: "
            f"{answer.words()} (HTTP {answer.status})",
            hint="BMCs lock a user out after some wrong passwords: do not try the same again",
        )

    def _end(self) -> None:
        session, self._session = self._session, None
        try:
            if session is not None:
                self._log_out(session)
        finally:
            self._exchange.close()

    def _log_out(self, session: Session) -> None:
        # What broke the conversation off must not leave the session behind: on a new connection, and with
        # an event of its own.
        self._exchange.close()
        self._clock = Clock()
        self._ends_at = math.inf
        self._broken_off = self._clock.cancelled
        order = Order("DELETE", session.uri, headers={"X-Auth-Token": session.token})
        try:
            answer = self._patiently(order, _LOGOUT_S)
        except NodeprepError as error:
            _log.warning("the session on the %s stays until it expires: %s", self.target, error.message)
        else:
            if not answer.good and answer.status not in (401, 404, 410):
                _log.warning("the session on the %s stays until it expires: %s", self.target, answer.words())

    # One request

    def _request(self, order: Order, patience_s: float | None) -> Answer:
        """The answer, good or bad, to a request that carries the login."""
        seconds = self._patience_s if patience_s is None else patience_s
        answer = self._patiently(self._with_login(order), seconds)
        if answer.status == 401 and self._session is not None:
            # The session had expired: after 30 s on some BMCs. Once only: a new one has not.
            self._log_in()
            answer = self._patiently(self._with_login(order), seconds)
        if answer.status == 401:
            raise self._no_login(answer)
        return answer

    def _patiently(self, order: Order, seconds: float) -> Answer:
        """The answer, after as many tries as the BMC asks for and the time allows."""
        patience = Patience(self._clock, min(seconds, self._ends_at - self._clock.now()))
        stumbles = 0
        while True:
            answer = self._exchange.carry(order, patience)
            if answer.asks_for_patience():
                self._tell_busy(answer, patience)
                if patience.pause(retry_after_s(answer.headers)):
                    continue
                raise NotReady(
                    f"the {self.target} is not ready for {order.method} {order.uri}: "
                    f"{answer.words()} (HTTP {answer.status})",
                    messages=answer.messages,
                    hint="it did nothing; try again later",
                )
            if order.method == "GET" and answer.status in _STUMBLES:
                stumbles += 1
                if stumbles < _STUMBLE_TRIES and patience.pause():
                    continue
            return answer

    def _tell_busy(self, answer: Answer, patience: Patience) -> None:
        """Minutes may go by, and silence looks like a hang."""
        notify, self._notify = self._notify, None
        if notify is not None:
            left_s = patience.left()
            notify(
                f"the {self.target} is busy (HTTP {answer.status}): asking again, "
                f"at most {left_s:.0f} s for each request"
            )

    def _with_login(self, order: Order) -> Order:
        if self._session is not None:
            login: Mapping[str, str] = {"X-Auth-Token": self._session.token}
        else:
            login = basic(self.target.user, self.target.password)
        return dataclasses.replace(order, headers={**login, **order.headers})

    def _good(self, answer: Answer) -> Answer:
        if answer.good:
            return answer
        raise refusal(answer, str(self.target))

    def _precondition(self, undecided: Undecided) -> PreconditionFailed:
        answer = undecided.answer
        if undecided.changed:
            message = f"{answer.uri} of the {self.target} was changed by somebody else since it was read"
            hint = "look again at what is staged there before writing"
        else:
            message = f"the {self.target} takes no form of its own ETag for {answer.uri}: {answer.words()}"
            hint = f"If-Match was tried as {', '.join(value or '(none)' for value in undecided.tried)}"
        return PreconditionFailed(
            message,
            uri=answer.uri,
            status=answer.status,
            messages=answer.messages,
            hint=hint,
            changed=undecided.changed,
            tried=undecided.tried,
        )

    def _clean(self, text: str) -> str:
        """Words of a BMC; some repeat what they were sent."""
        token = self._session.token if self._session is not None else ""
        for secret in (self.target.password, token):
            text = text.replace(secret, "***") if secret else text
        return text


def _resource(answer: Answer, uri: str) -> Resource:
    if not answer.body:
        raise Malformed(f"{uri} is empty (HTTP {answer.status})", uri=uri)
    return Resource(uri, answer.body, read_etag(answer.headers.get("etag"), answer.body))


def _service_root(root: Resource) -> Resource:
    if root.find(str, "RedfishVersion") is None and root.find(object, "Systems") is None:
        raise Malformed(f"{root.uri} is not a Redfish service root", uri=root.uri)
    return root
