"""The login: a session that is always ended, or Basic where a session cannot be had."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from nodeprep.bmc.redfish.resource import Resource

Login = Literal["session", "basic"]
SESSIONS = "/redfish/v1/SessionService/Sessions"
# No session service, or no free session (Dell's RAC0218 is a 503): Basic may still go, and leaks nothing.
NO_SESSION_STATUS = frozenset({400, 404, 405, 409, 410, 429, 500, 501, 503, 507})


@dataclass(frozen=True, slots=True)
class Session:
    """A session on the BMC.

    Attributes:
        uri: To delete; every BMC has only a few sessions, and keeps one that is left open for minutes.
        token: Never shown.
    """

    uri: str
    token: str

    def __repr__(self) -> str:
        return f"Session({self.uri!r})"


def basic(user: str, password: str) -> Mapping[str, str]:
    """The header for one request without a session."""
    pair = f"{user}:{password}".encode()
    return {"Authorization": f"Basic {base64.b64encode(pair).decode('ascii')}"}


def sessions_uri(root: Resource) -> str:
    """Where a session is asked for; the usual place when the root was not to be read before the login."""
    found = root.find_link("Links", "Sessions") or root.find_link("links", "Sessions")
    return found or SESSIONS
