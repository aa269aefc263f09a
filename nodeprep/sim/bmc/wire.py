"""What goes over the wire: one request, one answer, and what the link does to the answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum


class Link(Enum):
    """What becomes of an answer on its way."""

    DELIVER = "deliver"
    CLOSE = "close"
    """Delivered, and the connection is closed after it."""
    DROP = "drop"
    """The connection is closed before any byte of the answer."""
    RESET = "reset"
    """The same with a TCP RST."""
    HALF = "half"
    """Half of the body arrives, then the connection is closed."""
    HANG = "hang"
    """Nothing arrives, and the connection stays open."""


@dataclass(frozen=True, slots=True)
class Request:
    """One request.

    Attributes:
        path: Without the query.
        headers: Names in lower case.
        query: What stands after the question mark, as sent.
        turn: How many requests came before it on the same connection.
    """

    method: str
    path: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    turn: int = 0
    query: str = ""


@dataclass(frozen=True, slots=True)
class Response:
    """One answer.

    Attributes:
        delay_s: Seconds before it is sent.
    """

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    link: Link = Link.DELIVER
    delay_s: float = 0.0
