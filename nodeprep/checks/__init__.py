"""One check a file; see _check.py for what a check is and docs/checks/ for what each means."""

from __future__ import annotations

from collections.abc import Collection

from nodeprep.checks._check import Check, CheckPhase, Context
from nodeprep.model.result import CheckResult
from nodeprep.registry import discover

__all__ = ["Check", "CheckPhase", "Context", "all_checks", "evaluate"]


def all_checks() -> dict[str, Check]:
    """Every check by id, in the order of their names.

    Raises:
        NodeprepError: A module of this folder defines no CHECK, or one with another id.
        ImportError: A module does not import.
    """
    return discover(__name__, "CHECK")


def evaluate(
    context: Context, phases: Collection[CheckPhase] = ("static", "load")
) -> tuple[CheckResult, ...]:
    """All results of the checks of the given phases, unwaived, in the order of check ids."""
    chosen = (check for check in all_checks().values() if check.phase in phases)
    return tuple(result for check in chosen for result in check.run(context))
