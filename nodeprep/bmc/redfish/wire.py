"""Bytes to and from one BMC: pinned certificates, and waits that a user can break off.

httpx over a connection pool of one connection. The sockets are ours, since those of httpcore wait for a
silent BMC until the timeout, whatever the user does.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import httpcore
import httpx

from nodeprep.bmc.redfish.errors import NotTrusted
from nodeprep.bmc.redfish.tls import check_fingerprint, tls_context
from nodeprep.bmc.target import BmcTarget
from nodeprep.errors import Interrupted

T = TypeVar("T")
# How often a wait looks whether the user has broken it off.
_LOOK_S = 0.2
# BMCs end idle connections after some 5 to 60 s; what is older is not worth a reset.
_IDLE_S = 20.0
_FOREVER_S = 3600.0
_EXCEPTIONS: tuple[tuple[type[Exception], type[httpx.TransportError]], ...] = (
    (httpcore.ConnectTimeout, httpx.ConnectTimeout),
    (httpcore.ReadTimeout, httpx.ReadTimeout),
    (httpcore.WriteTimeout, httpx.WriteTimeout),
    (httpcore.PoolTimeout, httpx.PoolTimeout),
    (httpcore.ConnectError, httpx.ConnectError),
    (httpcore.ReadError, httpx.ReadError),
    (httpcore.WriteError, httpx.WriteError),
    (httpcore.RemoteProtocolError, httpx.RemoteProtocolError),
    (httpcore.LocalProtocolError, httpx.LocalProtocolError),
)


class WireTransport(httpx.BaseTransport):
    """The transport of one BMC; one connection, one request at a time."""

    def __init__(self, target: BmcTarget, cancelled: threading.Event) -> None:
        self._pool = httpcore.ConnectionPool(
            ssl_context=tls_context(target.tls),
            max_connections=1,
            max_keepalive_connections=1,
            keepalive_expiry=_IDLE_S,
            network_backend=_Backend(target, cancelled),
        )

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """As the transports of httpx do it."""
        assert isinstance(request.stream, httpx.SyncByteStream)  # noqa: S101
        asked = httpcore.Request(
            method=request.method,
            url=httpcore.URL(
                scheme=request.url.raw_scheme,
                host=request.url.raw_host,
                port=request.url.port,
                target=request.url.raw_path,
            ),
            headers=request.headers.raw,
            content=request.stream,
            extensions=request.extensions,
        )
        with _as_httpx():
            answer = self._pool.handle_request(asked)
        assert isinstance(answer.stream, Iterable)  # noqa: S101
        return httpx.Response(
            status_code=answer.status,
            headers=answer.headers,
            stream=_Body(answer.stream),
            extensions=answer.extensions,
        )

    def close(self) -> None:
        """Ends the connection."""
        self._pool.close()


class _Body(httpx.SyncByteStream):
    def __init__(self, stream: Iterable[bytes]) -> None:
        self._stream = stream

    def __iter__(self) -> Iterator[bytes]:
        with _as_httpx():
            yield from self._stream

    def close(self) -> None:
        if hasattr(self._stream, "close"):
            self._stream.close()


class _Backend(httpcore.NetworkBackend):
    def __init__(self, target: BmcTarget, cancelled: threading.Event) -> None:
        self._target = target
        self._cancelled = cancelled

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,  # noqa: ARG002
        socket_options: Iterable[Any] | None = None,  # noqa: ARG002
    ) -> httpcore.NetworkStream:
        watch = _Watch(self._target, self._cancelled, timeout)
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except OSError as error:
            raise httpcore.ConnectError(f"{host}: {error.strerror}") from error
        failure: Exception = httpcore.ConnectError(f"{host} has no address")
        for family, kind, protocol, _, address in found:
            try:
                connected = _connect(socket.socket(family, kind, protocol), address, watch)
            except TimeoutError:
                raise httpcore.ConnectTimeout("no connection in time") from None
            except OSError as error:
                failure = httpcore.ConnectError(error.strerror or str(error))
                continue
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return _Stream(connected, self._target, self._cancelled)
        raise failure


class _Stream(httpcore.NetworkStream):
    def __init__(self, connected: socket.socket, target: BmcTarget, cancelled: threading.Event) -> None:
        self._socket = connected
        self._target = target
        self._cancelled = cancelled

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        try:
            return self._patiently(lambda: self._socket.recv(max_bytes), timeout)
        except TimeoutError as error:
            raise httpcore.ReadTimeout("no answer in time") from error
        except OSError as error:
            raise httpcore.ReadError(error.strerror or str(error)) from error

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        left = memoryview(buffer)
        try:
            while left:
                sent = self._patiently(lambda: self._socket.send(left), timeout)  # noqa: B023
                left = left[sent:]
        except TimeoutError as error:
            raise httpcore.WriteTimeout("it takes no data") from error
        except OSError as error:
            raise httpcore.WriteError(error.strerror or str(error)) from error

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        try:
            self._socket.setblocking(True)
            secured = ssl_context.wrap_socket(
                self._socket, server_hostname=server_hostname, do_handshake_on_connect=False
            )
            self._socket = secured
            self._patiently(secured.do_handshake, timeout)
            check_fingerprint(
                self._target.tls.fingerprint, secured.getpeercert(binary_form=True), str(self._target)
            )
        except ssl.SSLCertVerificationError as error:
            self.close()
            raise NotTrusted(
                f"the {self._target} shows a certificate that cannot be believed: {error.verify_message}",
                hint=_trust_hint(self._target),
            ) from error
        except TimeoutError as error:
            self.close()
            raise httpcore.ConnectTimeout("no TLS in time") from error
        except OSError as error:
            self.close()
            raise httpcore.ConnectError(f"no TLS: {error.strerror or error}") from error
        except BaseException:
            self.close()
            raise
        return self

    def get_extra_info(self, info: str) -> Any:
        if info == "ssl_object" and isinstance(self._socket, ssl.SSLSocket):
            return self._socket
        if info == "is_readable":
            return self._socket.fileno() < 0 or bool(_ready(self._socket, select.POLLIN, 0))
        return None

    def _patiently(self, act: Callable[[], T], timeout: float | None) -> T:
        """Tries in slices; an SSL operation that timed out goes on where it was."""
        watch = _Watch(self._target, self._cancelled, timeout)
        while True:
            self._socket.settimeout(watch.slice())
            with contextlib.suppress(TimeoutError):
                return act()


class _Watch:
    """The time that is left of one wait, in slices."""

    def __init__(self, target: BmcTarget, cancelled: threading.Event, timeout: float | None) -> None:
        self._target = target
        self._cancelled = cancelled
        self._end = time.monotonic() + (_FOREVER_S if timeout is None else timeout)

    def slice(self) -> float:
        if self._cancelled.is_set():
            raise Interrupted(f"the conversation with the {self._target} was broken off")
        left = self._end - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return min(_LOOK_S, left)


def _trust_hint(target: BmcTarget) -> str:
    if target.by_options:
        return "name its authority (--ca FILE), or pin its certificate (--fingerprint SHA256)"
    return "name its authority (ca), or pin its certificate (fingerprint)"


def _connect(unconnected: socket.socket, address: Any, watch: _Watch) -> socket.socket:
    try:
        unconnected.setblocking(False)
        code = unconnected.connect_ex(address)
        if code not in (0, errno.EINPROGRESS):
            raise OSError(code, os.strerror(code))
        while not _ready(unconnected, select.POLLOUT, watch.slice()):
            pass
        fault = unconnected.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if fault:
            raise OSError(fault, os.strerror(fault))
    except BaseException:
        unconnected.close()
        raise
    return unconnected


def _ready(some: socket.socket, event: int, seconds: float) -> list[tuple[int, int]]:
    # Not select: a run over a rack has more than 1024 descriptors.
    poll = select.poll()
    poll.register(some.fileno(), event | select.POLLHUP | select.POLLERR)
    return poll.poll(seconds * 1000)


@contextlib.contextmanager
def _as_httpx() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        for of_httpcore, of_httpx in _EXCEPTIONS:
            if isinstance(error, of_httpcore):
                raise of_httpx(str(error)) from error
        raise
