"""What a phase is: what it does on the GPU, and what the parent makes of its messages."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Optional, Tuple

from ...node import reading
from ..backends import Backend
from ..digests import Comparison
from ..inject import Flip
from ..levels import Budget
from ..turns import Turns
from ..workload import Workload

NOT_REACHED = "the probe did not get that far"

Send = Callable[..., None]
Take = Callable[[Dict[str, Any]], None]
Document = Dict[str, Any]


@dataclass(frozen=True)
class Assignment:
    """What one GPU is to do.

    Attributes:
        started: time.monotonic() of the whole run's start; one clock for all processes of a machine.
        flip: Fault to inject, None for none.
    """

    workload: Workload
    budget: Budget
    started: float
    flip: Optional[Flip] = None


class Stage:
    """What a phase works with, in the worker.

    Attributes:
        send: Called with keyword arguments for each message to the parent.
        turns: The queue for what only one GPU may do at a time.
        round: Which round of the level's phases this is, from 1.
        comparison: The reference digests and what differed from them; one for all rounds.
        iteration: Number of the last measured iteration, over all rounds.
        confirmations: Mismatches that were run again on the spot.
    """

    def __init__(self, backend: Backend, assignment: Assignment, send: Send, turns: Turns) -> None:
        self.backend = backend
        self.assignment = assignment
        self.send = send
        self.turns = turns
        self.round = 1
        self.comparison = Comparison(assignment.workload.depth)
        self.iteration = 0
        self.confirmations = 0

    @property
    def workload(self) -> Workload:
        """The model."""
        return self.assignment.workload

    @property
    def budget(self) -> Budget:
        """Times of the level."""
        return self.assignment.budget

    def now(self) -> float:
        """Seconds of the run."""
        return time.monotonic() - self.assignment.started

    def pace(self, started: float) -> None:
        """Waits out the level's least time for an iteration that began then (time.monotonic())."""
        left = started + self.budget.pace_s - time.monotonic()
        if left > 0:
            time.sleep(left)


class View:
    """What telemetry saw of one GPU, for the parts of its record.

    Args:
        enforced_limit_w: Reading of the power limit.
        values: Called with a column and a stretch of the run: times and values sampled in it.
        trouble: Why there are no samples, "" when there are.
        cool_down: Start and end of the cool-down, None when it was not reached.
    """

    def __init__(
        self,
        enforced_limit_w: Dict[str, Any],
        values: Callable[[str, float, float], List[Tuple[float, float]]],
        trouble: str = "",
        cool_down: Optional[Tuple[float, float]] = None,
    ) -> None:
        self.enforced_limit_w = enforced_limit_w
        self.values = values
        self.trouble = trouble
        self.cool_down = cool_down


class Part:
    """What the parent keeps of a phase, over all rounds. The default keeps nothing.

    Args:
        workload: The model that runs.
    """

    def __init__(self, workload: Workload) -> None:
        self.workload = workload

    def takes(self) -> Dict[str, Take]:
        """The kinds of messages it takes; no two phases take the same."""
        return {}

    def document(self, view: View) -> Document:  # noqa: ARG002 - most parts need no telemetry
        """Its keys in the GPU's part of nodeprep.probe/1. Objects of the same key are merged."""
        return {}


@dataclass(frozen=True)
class Phase:
    """One stretch of a run.

    Attributes:
        name: As in the level's list and in `phases` of the result; the file's name with "-" for "_".
        words: What the progress line says when it begins.
        run: Called in the worker with the stage and the seconds that the level gives it; None for the
            one phase that comes when the worker has ended.
        part: Makes what the parent keeps of it.
    """

    name: str
    words: str
    run: Optional[Callable[[Stage, float], None]]
    part: Callable[[Workload], Part] = Part


def not_reached() -> Dict[str, Any]:
    """The reading of what a run has not come to."""
    return reading.error(NOT_REACHED)
