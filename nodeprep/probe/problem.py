"""Errors a user can do something about, with a hint."""

from __future__ import annotations


class ProbeError(Exception):
    """The probe cannot run, or cannot go on.

    Args:
        message: What went wrong, in the user's words.
        hint: What to do about it; "" when there is nothing to say.
    """

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageProblem(ProbeError):
    """The command line or a workload file cannot mean what it says."""
