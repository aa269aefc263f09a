"""Logins: basic authentication and sessions."""

from __future__ import annotations

import base64
import binascii
import hmac
import secrets
from collections.abc import Callable
from dataclasses import dataclass

from nodeprep.sim.bmc.conduct import LoginConduct


@dataclass(slots=True)
class Session:
    """One session; its token is shown once."""

    id: str
    user: str
    token: str
    used: float
    requests: int = 0


class Sessions:
    """Who is logged in.

    Args:
        timeout_s: A session that is not used for so long is gone.
    """

    def __init__(
        self, user: str, password: str, conduct: LoginConduct, timeout_s: float, clock: Callable[[], float]
    ) -> None:
        self._user = user
        self._password = password
        self._conduct = conduct
        self._timeout_s = timeout_s
        self._clock = clock
        self._open: dict[str, Session] = {}
        self._made = 0

    def fits(self, user: object, password: object) -> bool:
        """Whether a name and a password are right."""
        if not isinstance(user, str) or not isinstance(password, str):
            return False
        given, own = f"{user}\0{password}", f"{self._user}\0{self._password}"
        return hmac.compare_digest(given.encode(), own.encode())

    def basic(self, header: str) -> bool:
        """Whether an Authorization header opens this BMC."""
        scheme, _, value = header.partition(" ")
        if not self._conduct.basic or scheme.lower() != "basic":
            return False
        try:
            user, _, password = base64.b64decode(value, validate=True).decode().partition(":")
        except (binascii.Error, UnicodeDecodeError):
            return False
        return self.fits(user, password)

    def open(self) -> Session | None:
        """A new session; None when there are as many as can be."""
        self._expire()
        if self._conduct.sessions_taken or len(self._open) >= self._conduct.session_limit:
            return None
        self._made += 1
        made = Session(str(self._made), self._user, secrets.token_hex(16), self._clock())
        self._open[made.token] = made
        return made

    def by_token(self, token: str) -> Session | None:
        """The session of a token; being asked for keeps it alive."""
        self._expire()
        found = self._open.get(token)
        if found is None:
            return None
        found.used = self._clock()
        found.requests += 1
        if 0 < self._conduct.session_requests < found.requests:
            del self._open[token]
            return None
        return found

    def by_id(self, name: str) -> Session | None:
        """The session of that name."""
        self._expire()
        return next((session for session in self._open.values() if session.id == name), None)

    def close(self, session: Session) -> None:
        """Log out."""
        self._open.pop(session.token, None)

    def close_all(self) -> None:
        """What a restart of the BMC does."""
        self._open.clear()

    def ids(self) -> list[str]:
        """Names of the open sessions."""
        self._expire()
        return [session.id for session in self._open.values()]

    def _expire(self) -> None:
        oldest = self._clock() - self._timeout_s
        self._open = {token: session for token, session in self._open.items() if session.used >= oldest}
