"""HTTP/1.1 for simulated BMCs: one connection, keep-alive, one request after the other.

An own parser, since the tests need what a server library hides: TCP RST, half an answer, no answer at all,
an ETag with its quotes twice; and since a thousand BMCs in one process need little memory each.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Callable
from http import HTTPStatus
from typing import cast

from nodeprep.sim.bmc.wire import Link, Request, Response

_LONGEST_HEAD = 32 * 1024
_LONGEST_BODY = 1024 * 1024
_END_OF_HEAD = b"\r\n\r\n"
# On close, send RST and not FIN.
_RST_ON_CLOSE = struct.pack("ii", 1, 0)
_WITHOUT_BODY = frozenset({204, 304})


class Connection(asyncio.Protocol):
    """One connection of a client.

    Args:
        handle: Makes the answer to a request.
    """

    def __init__(self, handle: Callable[[Request], Response], open_ones: set[Connection]) -> None:
        self._handle = handle
        self._open_ones = open_ones
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray()
        self._turn = 0
        # While an answer waits, later requests of the same connection wait behind it.
        self._waits = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take a connection."""
        self._transport = cast(asyncio.Transport, transport)
        self._open_ones.add(self)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        """Forget it."""
        self._transport = None
        self._open_ones.discard(self)

    def data_received(self, data: bytes) -> None:
        """Take what the client sends."""
        self._buffer += data
        self._serve()

    def close(self) -> None:
        """End it at once."""
        if self._transport is not None:
            self._transport.abort()

    def _serve(self) -> None:
        while self._transport is not None and not self._waits:
            try:
                request = self._next()
            except _BadRequest as bad:
                self._send("", Response(bad.status, link=Link.CLOSE), keep=False)
                return
            if request is None:
                return
            keep = request.headers.get("connection", "").lower() != "close"
            answer = self._handle(request)
            self._turn += 1
            if answer.delay_s > 0:
                self._waits = True
                loop = asyncio.get_running_loop()
                loop.call_later(answer.delay_s, self._send_late, request.method, answer, keep)
            else:
                self._send(request.method, answer, keep=keep)

    def _send_late(self, method: str, answer: Response, keep: bool) -> None:
        self._waits = False
        self._send(method, answer, keep=keep)
        self._serve()

    def _next(self) -> Request | None:
        """The next request in the buffer; None when it is not complete."""
        end = self._buffer.find(_END_OF_HEAD)
        if end < 0:
            if len(self._buffer) > _LONGEST_HEAD:
                raise _BadRequest(431)
            return None
        line, *lines = self._buffer[:end].decode("latin-1").split("\r\n")
        words = line.split(" ")
        if len(words) != 3 or not words[2].startswith("HTTP/1."):
            raise _BadRequest(400)
        headers = {}
        for field in lines:
            name, colon, value = field.partition(":")
            if not colon:
                raise _BadRequest(400)
            headers[name.strip().lower()] = value.strip()
        if "transfer-encoding" in headers:
            raise _BadRequest(501)
        length = headers.get("content-length", "0")
        if not length.isdecimal():
            raise _BadRequest(400)
        if int(length) > _LONGEST_BODY:
            raise _BadRequest(413)
        start = end + len(_END_OF_HEAD)
        if len(self._buffer) < start + int(length):
            return None
        body = bytes(self._buffer[start : start + int(length)])
        del self._buffer[: start + int(length)]
        path, _, query = words[1].partition("?")
        return Request(words[0], path, headers, body, self._turn, query)

    def _send(self, method: str, answer: Response, *, keep: bool) -> None:
        transport = self._transport
        if transport is None or answer.link is Link.HANG:
            self._waits = True
            return
        if answer.link is Link.RESET:
            transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RST_ON_CLOSE)
            transport.abort()
            return
        if answer.link is Link.DROP:
            transport.close()
            return
        close = answer.link is not Link.DELIVER or not keep
        body = b"" if answer.status in _WITHOUT_BODY else answer.body
        head = [
            f"HTTP/1.1 {answer.status} {_phrase(answer.status)}",
            "Server: nodeprep-sim",
            "OData-Version: 4.0",
        ]
        head += [f"{name}: {value}" for name, value in answer.headers.items()]
        if answer.status not in _WITHOUT_BODY:
            head.append(f"Content-Length: {len(body)}")
        if close:
            head.append("Connection: close")
        if method == "HEAD":
            body = b""
        if answer.link is Link.HALF:
            body = body[: len(body) // 2]
        transport.write("\r\n".join(head).encode("latin-1") + _END_OF_HEAD + body)
        if close:
            transport.close()


class _BadRequest(Exception):
    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""
