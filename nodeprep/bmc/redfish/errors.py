"""What a conversation over Redfish can end in, besides an answer.

BmcUnreachable
├── NotTrusted            its certificate is not the one, or from the one, that was asked for
├── NotReady              it answers, and said "later" until the patience was over
└── AnswerLost            a command was sent, and whether it was carried out is not known
BmcLoginRefused           see nodeprep.bmc.failures
BmcRefused
└── RedfishError
    ├── Missing           a resource (404), or a property of one, that is not there
    ├── Malformed         a property that is there, and is not what the schema says
    └── Refused           any other answer of 4xx or 5xx
        ├── PreconditionFailed   If-Match: the resource changed, or no form of its ETag is taken
        ├── LicenceNeeded
        ├── LockedDown
        └── PasswordNeeded       the setup password of the BIOS
"""

from __future__ import annotations

from typing import Any

from nodeprep.bmc.failures import BmcRefused, BmcUnreachable
from nodeprep.bmc.redfish.messages import Message


class NotTrusted(BmcUnreachable):
    """The TLS certificate was refused; nothing was sent, the password least of all."""


class NotReady(BmcUnreachable):
    """The BMC asked for patience for longer than there was.

    Attributes:
        messages: Its last words.
    """

    def __init__(self, message: str, *, messages: tuple[Message, ...] = (), hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.messages = messages


class AnswerLost(BmcUnreachable):
    """The connection ended between a command that must not be repeated and its answer."""


class RedfishError(BmcRefused):
    """An answer that is none.

    Attributes:
        uri: What was asked.
        status: Of HTTP; 0 when the fault is in the content of a good answer.
        messages: From @Message.ExtendedInfo, in their order.
        after_lost_answer: An earlier try of the same request got no answer, and may have been carried out.
        methods: What the header Allow names; empty when there was none.
    """

    def __init__(
        self,
        message: str,
        *,
        uri: str,
        status: int = 0,
        messages: tuple[Message, ...] = (),
        after_lost_answer: bool = False,
        methods: frozenset[str] = frozenset(),
        hint: str = "",
    ) -> None:
        super().__init__(message, code=status, hint=hint)
        self.methods = methods
        self.uri = uri
        self.status = status
        self.messages = messages
        self.after_lost_answer = after_lost_answer

    def told(self, key: str) -> bool:
        """Whether the BMC gave this message, for example "PropertyUnknown" or "SYS409"."""
        return any(message.key == key for message in self.messages)


class Missing(RedfishError):
    """Not there.

    Attributes:
        path: JSON path in the resource; empty when the resource itself is missing.
    """

    def __init__(
        self,
        message: str,
        *,
        uri: str,
        path: str = "",
        status: int = 0,
        messages: tuple[Message, ...] = (),
        **about: Any,
    ) -> None:
        super().__init__(message, uri=uri, status=status, messages=messages, **about)
        self.path = path


class Malformed(RedfishError):
    """There, and not what it should be.

    Attributes:
        path: JSON path in the resource; empty when the whole answer is unreadable.
    """

    def __init__(self, message: str, *, uri: str, path: str = "") -> None:
        super().__init__(message, uri=uri)
        self.path = path


class Refused(RedfishError):
    """Understood, and not carried out."""


class PreconditionFailed(Refused):
    """If-Match was refused.

    Attributes:
        changed: The resource is another one than was read: look again before writing.
        tried: The values of If-Match that were refused; "" is a request without the header.
    """

    def __init__(
        self, message: str, *, changed: bool = False, tried: tuple[str, ...] = (), **about: Any
    ) -> None:
        super().__init__(message, **about)
        self.changed = changed
        self.tried = tried


class LicenceNeeded(Refused):
    """The BMC wants a licence for this: no repetition helps."""


class LockedDown(Refused):
    """The configuration of the system is locked."""


class PasswordNeeded(Refused):
    """The BIOS has a setup password, and wants it."""
