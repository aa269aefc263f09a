"""What a conversation with a BMC can end in, besides an answer."""

from __future__ import annotations

from nodeprep.errors import ApplyFailed, Unreachable


class BmcUnreachable(Unreachable):
    """The BMC gave no answer in time, or stopped answering."""


class BmcLoginRefused(BmcUnreachable):
    """The BMC answered and let nobody in: wrong user, password or privilege."""


class BmcRefused(ApplyFailed):
    """The BMC understood a command and did not carry it out.

    Attributes:
        code: The protocol's own code for the reason; 0 when the refusal is not the BMC's.
    """

    def __init__(self, message: str, *, code: int = 0, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.code = code
