"""One order to a BMC and its answer, in spite of redirects and connections that end."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx

from nodeprep.bmc.failures import BmcUnreachable
from nodeprep.bmc.redfish.answers import MOST_BYTES, Answer, messages_of, read_body
from nodeprep.bmc.redfish.errors import AnswerLost, Malformed, RedfishError
from nodeprep.bmc.redfish.messages import Message, read_messages
from nodeprep.bmc.redfish.patience import Patience
from nodeprep.bmc.redfish.resource import own_path
from nodeprep.bmc.target import BmcTarget

CONNECT_S = 10.0
# For one try: a BMC that does not move for so long has lost the request.
READ_S = 60.0
# As long as it has never answered: the service root, which is asked first, costs a living BMC no work.
# Twice, for the first packet may have been lost.
FIRST_READ_S = 17.0
_FIRST_TRIES = 2
_HTTPS = 443
_TCP_TRIES = 4
_MOST_REDIRECTS = 5
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
# These two keep the method; what a server means by another one after a PATCH, nobody can tell.
_SAME_METHOD = frozenset({307, 308})


@dataclass(frozen=True, slots=True)
class Order:
    """A request.

    Attributes:
        headers: The login among them, so never shown.
        once: Not to be repeated when its answer is lost; goes over a new connection.
    """

    method: str
    uri: str
    body: Mapping[str, Any] | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    once: bool = False


class Exchange:
    """The connection to one BMC; opened when it is needed, and again when it ended.

    Args:
        clean: Takes secrets out of what the BMC says.
        transport: Makes what carries the requests.
    """

    def __init__(
        self, target: BmcTarget, clean: Callable[[str], str], transport: Callable[[], httpx.BaseTransport]
    ) -> None:
        self._target = target
        self._clean = clean
        self._transport = transport
        host = f"[{target.address}]" if ":" in target.address else target.address
        self._base = f"https://{host}:{target.port}"
        self._client: httpx.Client | None = None
        self._has_answered = False

    def carry(self, order: Order, patience: Patience) -> Answer:
        """The answer, whatever its status; redirects on the same BMC are followed.

        Raises:
            AnswerLost: The order was to be sent once, and no answer came.
            BmcUnreachable: No answer after some tries.
            RedfishError: A redirect to elsewhere or in circles, or an answer that cannot be read.
        """
        uri = order.uri
        lost = False
        for _ in range(_MOST_REDIRECTS + 1):
            answer = self._unbroken(order, uri, patience, lost)
            lost = answer.after_lost_answer
            followed = order.method == "GET" or answer.status in _SAME_METHOD
            if answer.status not in _REDIRECTS or not followed:
                return answer
            uri = self._redirected(answer)
        raise RedfishError(
            f"the {self._target} redirects {order.uri} in circles", uri=order.uri, status=answer.status
        )

    def close(self) -> None:
        """Ends the connection; the next order opens another."""
        client, self._client = self._client, None
        if client is not None:
            client.close()

    def _redirected(self, answer: Answer) -> str:
        """The new path. To another place would mean: the login, too."""
        given = answer.headers.get("location", "")
        here = httpx.URL(self._base)
        try:
            there = here.join(answer.uri).join(given)
        except httpx.InvalidURL:
            there = httpx.URL("none:")
        if (there.scheme, there.host, there.port or _HTTPS) != (here.scheme, here.host, here.port or _HTTPS):
            raise RedfishError(
                f"the {self._target} redirects {answer.uri} to another place: {self._clean(given)!r}",
                uri=answer.uri,
                status=answer.status,
            )
        return there.raw_path.decode("ascii")

    def _unbroken(self, order: Order, uri: str, patience: Patience, lost: bool) -> Answer:
        if order.once:
            # A kept connection may have died without our knowing, and then a lost answer tells nothing.
            self.close()
        failure: Exception = AssertionError()
        silent = 0
        for tries_left in reversed(range(_TCP_TRIES)):
            try:
                return self._once(order, uri, patience, lost)
            except (httpx.ConnectTimeout, httpx.PoolTimeout) as error:
                self.close()
                raise self._silent(order, uri, error) from error
            except httpx.ConnectError as error:
                failure = error
            # The BMC ended the connection: before the answer (HPE does so on kept ones), or within it.
            except (httpx.TransportError, httpx.DecodingError) as error:
                failure = error
                lost = True
                silent += isinstance(error, httpx.ReadTimeout)
            self.close()
            if lost and order.once:
                raise AnswerLost(
                    f"the {self._target} gave no answer to {order.method} {uri} ({_short(failure)}): "
                    "it may have been carried out, or not"
                ) from failure
            given_up = silent >= _FIRST_TRIES and not self._has_answered
            if not tries_left or given_up or not patience.pause():
                break
        raise self._silent(order, uri, failure) from failure

    def _silent(self, order: Order, uri: str, error: Exception) -> BmcUnreachable:
        return BmcUnreachable(
            f"the {self._target} gives no answer to {order.method} {uri}: {_short(error)}",
            hint="is the address right, and Redfish switched on in the BMC?",
        )

    def _once(self, order: Order, uri: str, patience: Patience, lost: bool) -> Answer:
        left = patience.left()
        if left <= 0:
            raise httpx.ConnectTimeout("the time for it is over")
        headers = dict(order.headers)
        content = None
        if order.body is not None:
            content = json.dumps(order.body).encode()
            headers["Content-Type"] = "application/json"
        read_s = READ_S if self._has_answered else FIRST_READ_S
        timeout = httpx.Timeout(min(read_s, left), connect=min(CONNECT_S, left))
        with self._opened().stream(
            order.method, f"{self._base}{uri}", headers=headers, content=content, timeout=timeout
        ) as response:
            self._has_answered = True
            data = bytearray()
            for piece in response.iter_bytes():
                data += piece
                if len(data) > MOST_BYTES:
                    raise Malformed(f"{uri} is larger than {MOST_BYTES >> 20} MiB", uri=uri)
                if patience.left() <= 0:
                    raise httpx.ReadTimeout("it sends, and does not come to an end")
        return self._answer(order, uri, response, bytes(data), lost)

    def _answer(self, order: Order, uri: str, response: httpx.Response, data: bytes, lost: bool) -> Answer:
        body: Mapping[str, Any] = {}
        messages: tuple[Message, ...] = ()
        if not response.is_success:
            messages = messages_of(data, self._clean)
        elif order.method == "GET":
            body = read_body(data, uri)
        elif data.lstrip().startswith((b"{", b"\x1f\x8b")):
            # A good answer to anything else may also be a page of HTML, which says nothing.
            body = read_body(data, uri)
            messages = read_messages(body, self._clean)
        return Answer(
            order.method,
            uri,
            response.status_code,
            response.headers,
            body,
            messages,
            own_path(response.headers.get("location")),
            order.headers.get("If-Match", ""),
            lost,
        )

    def _opened(self) -> httpx.Client:
        if self._client is None:
            self._client = httpx.Client(
                transport=self._transport(),
                # No proxy and no .netrc of this machine.
                trust_env=False,
                headers={
                    "Accept": "application/json",
                    "Accept-Encoding": "gzip",
                    "OData-Version": "4.0",
                    "User-Agent": "nodeprep",
                },
            )
        return self._client


def _short(error: Exception) -> str:
    return str(error) or type(error).__name__
