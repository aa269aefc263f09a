"""Bodies of errors and results, in Redfish's form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

import msgspec

from nodeprep.sim.bmc.wire import Response

JSON = {"Content-Type": "application/json; charset=utf-8"}


@dataclass(frozen=True, slots=True)
class Message:
    """One message.

    Attributes:
        id: With the registry's prefix.
        about: Properties it is about, as JSON pointers.
    """

    id: str
    text: str
    args: tuple[str, ...] = ()
    about: tuple[str, ...] = ()
    severity: str = "Warning"

    def to_dict(self) -> dict[str, Any]:
        """As it stands in @Message.ExtendedInfo."""
        result: dict[str, Any] = {
            "@odata.type": "#Message.v1_1_1.Message",
            "MessageId": self.id,
            "Message": self.text,
            "MessageArgs": list(self.args),
            "Severity": self.severity,
            "Resolution": "None",
        }
        if self.about:
            result["RelatedProperties"] = list(self.about)
        return result


@dataclass(eq=False)
class Refused(Exception):
    """A request that gets an error.

    Attributes:
        code: Of the error as a whole; by default that of its first message.
    """

    status: int
    messages: tuple[Message, ...]
    headers: dict[str, str] = field(default_factory=dict)
    code: str = ""


def error_response(refused: Refused, style: str) -> Response:
    """The answer to a refused request.

    Args:
        style: "extended", "bare" (no words at all), "html" (a page, as web servers in front of a BMC send).
    """
    reason = HTTPStatus(refused.status).phrase
    if style == "bare":
        return Response(refused.status, refused.headers)
    if style == "html":
        page = f"<html><head><title>{refused.status} {reason}</title></head><body>{reason}</body></html>"
        return Response(refused.status, {**refused.headers, "Content-Type": "text/html"}, page.encode())
    body = {"error": told(refused.messages, refused.code)}
    return Response(refused.status, {**refused.headers, **JSON}, msgspec.json.encode(body))


def told(messages: Sequence[Message], code: str = "") -> dict[str, Any]:
    """The value of "error": also used for success with something to say."""
    return {
        "code": code or messages[0].id,
        "message": messages[0].text
        if len(messages) == 1
        else "See @Message.ExtendedInfo for more information.",
        "@Message.ExtendedInfo": [message.to_dict() for message in messages],
    }
