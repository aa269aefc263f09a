"""What happens on one GPU: the level's phases, one after the other. Runs in the worker."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Dict, Optional

from .backends import Backend
from .inject import Flip
from .levels import ELASTIC, budget_from
from .phases import PHASES, Assignment, Stage
from .phases._phase import Send
from .turns import Turns
from .workload import Workload

# Between the end of the load and result.json: stopping, summaries, writing.
WRAP_UP_S = 1.0


class Session:
    """The phases of one GPU.

    Args:
        send: Called with keyword arguments for each message to the parent.
        turns: The queue for lone copies.
    """

    def __init__(self, backend: Backend, assignment: Assignment, send: Send, turns: Turns) -> None:
        self._stage = Stage(backend, assignment, send, turns)

    def run(self) -> None:
        """Everything but the import, which came before, and the cool-down, which needs no worker."""
        stage, budget = self._stage, self._stage.budget
        stage.send(kind="versions", versions=stage.backend.versions())
        for name, seconds in budget.opening:
            self._enter(name, seconds)
        left = self._left()
        rounds = 1 if left is None else budget.rounds_within(left)
        for number in range(rounds):
            stage.round = number + 1
            self._run_round(rounds - number)
        stage.send(kind="done", t=stage.now())

    def _run_round(self, rounds_left: int) -> None:
        """The compute phase takes what the other phases leave of this round's share of the time."""
        budget, left = self._stage.budget, self._left()
        share = None if left is None else left / rounds_left - budget.beside_s
        for name, seconds in budget.round:
            if name == ELASTIC and share is not None:
                seconds = max(0.0, min(seconds, share))  # noqa: PLW2901 - the level's is the most
            self._enter(name, seconds)

    def _enter(self, name: str, seconds: float) -> None:
        stage = self._stage
        stage.send(kind="phase", name=name, round=stage.round, t=stage.now())
        run = PHASES[name].run
        if run is None:
            raise ValueError("the phase %s is not for workers" % name)
        run(stage, seconds)

    def _left(self) -> Optional[float]:
        """Seconds until the load must end; None when nothing says so."""
        budget = self._stage.budget
        if budget.total_s is None:
            return None
        return budget.total_s - budget.cool_down_s - WRAP_UP_S - self._stage.now()


def assignment_document(assignment: Assignment) -> Dict[str, Any]:
    """An assignment as plain data, for the worker's command line."""
    return asdict(assignment)


def assignment_from(data: Dict[str, Any]) -> Assignment:
    """The assignment that `assignment_document` gave."""
    flip = data["flip"]
    return Assignment(
        workload=Workload(**data["workload"]),
        budget=budget_from(data["budget"]),
        started=data["started"],
        flip=Flip(**flip) if flip else None,
    )
