"""The three-valued reading: a value, "not supported", or an error with its text.

NVML, sysfs and BMCs each have a way to say nothing, and each has been mistaken for zero somewhere
(shared bug of several health checkers: a swallowed NVML error counted as healthy). A reading keeps
the three apart up to the certificate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

T = TypeVar("T")
U = TypeVar("U")

State = Literal["ok", "not_supported", "error"]


class Unreadable(Exception):
    """Raised by `Reading.require` when there is no value; carries the reading's own words."""


@dataclass(frozen=True, slots=True)
class Reading(Generic[T]):
    """What came back when a value was asked for.

    Attributes:
        state: "ok" has a value; "not_supported" means the part has no such thing (its owner said
            so); "error" is everything else: a time-out, a refusal, garbage.
        value: Only with "ok". A value of None is not a reading.
        detail: The error text or the reason, in the words of whoever gave it.
    """

    state: State
    value: T | None = None
    detail: str = ""

    def __post_init__(self) -> None:
        if (self.state == "ok") != (self.value is not None):
            raise ValueError(f"a reading in state {self.state!r} with value {self.value!r}")

    @classmethod
    def ok(cls, value: T) -> Reading[T]:
        """A value that was read."""
        return cls("ok", value)

    @classmethod
    def not_supported(cls, detail: str) -> Reading[T]:
        """The part has no such thing."""
        return cls("not_supported", None, detail)

    @classmethod
    def error(cls, detail: str) -> Reading[T]:
        """Could not be read."""
        return cls("error", None, detail)

    def require(self, what: str) -> T:
        """The value, or `Unreadable` saying what could not be read and why."""
        if self.value is None:
            state = "not supported" if self.state == "not_supported" else "unreadable"
            raise Unreadable(f"{what} is {state}: {self.detail or 'no reason given'}")
        return self.value

    def __str__(self) -> str:
        return str(self.value) if self.value is not None else f"{self.state}: {self.detail}"
