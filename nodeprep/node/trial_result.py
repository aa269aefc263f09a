"""What the steps of a trial boot return, and how they fail."""

from __future__ import annotations

from typing import Any, Dict, Optional

from .boot_loaders import BootLoader, Refusal, ToolError, find
from .power_unit import UnitError
from .reading import describe
from .trial_words import lines

Result = Dict[str, Any]

GOOD, BAD, NOT_BOOTED = "good", "bad", "not_booted"

# Everything that a node or its tools can do to a step; anything else is a bug.
PROBLEMS = (Refusal, ToolError, UnitError, OSError, ValueError)


def result(**more: Any) -> Result:
    """The result of a step.

    Args:
        more: What differs from "nothing changed, nothing to tell". The keys: changed, failed, msg, hint,
            diff (permanent arguments before and after, one a line), trial_id, phase (of the trial,
            "" when there is none), booted (this boot is the trial), rebooted (the node booted since the
            trial was staged or armed), verdict, findings (what, before, now), notes, evidence (of a trial
            boot that failed), deadman (the node reboots by itself unless the trial is confirmed),
            needs_reboot (the running arguments are not those that are to last), finished (of a restore:
            nothing is left to be undone), outcome (of the trial that ended: committed, abandoned or
            rolled back; "" while one is under way), owner (of the trial that the step was about: controller,
            run, since, seen_at, hold_s; {} when nobody said), held (the step was refused for its owner).
    """
    return {
        "changed": False,
        "failed": False,
        "msg": "",
        "hint": "",
        "diff": {"before": "", "after": ""},
        "trial_id": "",
        "phase": "",
        "booted": False,
        "rebooted": False,
        "verdict": "",
        "findings": [],
        "notes": [],
        "evidence": {},
        "deadman": False,
        "needs_reboot": False,
        "finished": False,
        "outcome": "",
        "owner": {},
        "held": False,
        **more,
    }


def failure(problem: BaseException, **more: Any) -> Result:
    """The result of a step that one of PROBLEMS ended."""
    words = str(problem) if isinstance(problem, (Refusal, ToolError, UnitError)) else describe(problem)
    hint = getattr(problem, "hint", "")
    return result(**{"failed": True, "msg": words, "hint": hint, **more})


def difference(before: str, after: str) -> Dict[str, str]:
    """Two command lines for Ansible's --diff; empty when they are the same."""
    if before == after:
        return {"before": "", "after": ""}
    return {"before": lines(before), "after": lines(after)}


def boot_loader(root: str, given: Optional[BootLoader]) -> BootLoader:
    """The boot loader that is in charge, unless one is given.

    Raises:
        Refusal: None that nodeprep can write.
    """
    return given or find(root)
