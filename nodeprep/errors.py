"""Every error nodeprep raises on purpose, and the exit code each one means.

NodeprepError                 1   a bug, or something nobody foresaw
├── UsageError                2   wrong arguments, an inventory that matches nothing
│   ├── PolicyError           2   the policy or a profile; carries all problems at once
│   └── DocumentError         2   a file that should be a nodeprep document and is not
├── DriftFound               10   the node is not what it should be
├── ApplyFailed              11
├── Unreachable              12
├── Rejected                 20   a verdict, or a certificate that does not hold
├── Inconclusive             21
└── Interrupted             130
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum


class ExitCode(IntEnum):
    """The contract with scripts; `nodeprep --help` lists it too."""

    OK = 0
    BUG = 1
    USAGE = 2
    DRIFT = 10
    APPLY_FAILED = 11
    UNREACHABLE = 12
    REJECTED = 20
    INCONCLUSIVE = 21
    INTERRUPTED = 130


# With several hosts the worst speaks for all. 21 before 10: not knowing is worse than knowing what differs.
_WORST_FIRST = (
    ExitCode.BUG,
    ExitCode.USAGE,
    ExitCode.APPLY_FAILED,
    ExitCode.REJECTED,
    ExitCode.UNREACHABLE,
    ExitCode.INCONCLUSIVE,
    ExitCode.DRIFT,
    ExitCode.OK,
)


def worst(codes: Iterable[ExitCode]) -> ExitCode:
    """The exit code of a run over several hosts; no host at all is OK."""
    found = set(codes)
    if ExitCode.INTERRUPTED in found:
        return ExitCode.INTERRUPTED
    return next((code for code in _WORST_FIRST if code in found), ExitCode.OK)


class NodeprepError(Exception):
    """Base of all errors that end a command with a message instead of a traceback.

    Args:
        message: What went wrong, in the user's words.
        hint: What to do about it; printed on a line of its own.
    """

    exit_code = ExitCode.BUG

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(NodeprepError):
    """The command cannot mean what was typed."""

    exit_code = ExitCode.USAGE


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong with a policy or document, with the path that leads to it."""

    path: str
    message: str
    hint: str = ""

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" + (f" (hint: {self.hint})" if self.hint else "")


class PolicyError(UsageError):
    """A policy that does not hold together. All problems are reported at once."""

    def __init__(self, source: str, problems: Iterable[Problem]) -> None:
        self.source = source
        self.problems = tuple(problems)
        count = len(self.problems)
        lines = "\n".join(f"  {problem}" for problem in self.problems)
        super().__init__(f"{source}: {count} problem{'s' * (count != 1)}\n{lines}")


class DocumentError(UsageError):
    """A file that is not the nodeprep document it should be."""


class DriftFound(NodeprepError):
    """The node differs from what it should be, or from its certificate."""

    exit_code = ExitCode.DRIFT


class ApplyFailed(NodeprepError):
    """A change could not be made, or did not take effect."""

    exit_code = ExitCode.APPLY_FAILED


class Unreachable(NodeprepError):
    """A node or BMC did not answer."""

    exit_code = ExitCode.UNREACHABLE


class Rejected(NodeprepError):
    """A node failed, or a certificate is refused."""

    exit_code = ExitCode.REJECTED


class Inconclusive(NodeprepError):
    """Not enough is known for a verdict."""

    exit_code = ExitCode.INCONCLUSIVE


class Interrupted(NodeprepError):
    """Ctrl-C or SIGTERM."""

    exit_code = ExitCode.INTERRUPTED
