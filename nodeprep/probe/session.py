"""What happens on one GPU, phase by phase. Runs in the worker; tells the parent as it goes."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, replace
from typing import Any, Callable, Dict, Optional

from ..node import reading
from .backends import Backend
from .digests import Comparison, Mismatch
from .inject import Flip
from .levels import Budget
from .turns import Turns
from .workload import Workload

# Repeating a pass costs a pass; a fault that stays is confirmed well enough by the first few.
CONFIRMED_MISMATCHES = 3
# Between the end of the load and result.json: stopping, summaries, writing.
WRAP_UP_S = 1.0

_NOT_ALONE = reading.error("another GPU did not end its copies, so none could be measured alone")

Send = Callable[..., None]


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


class Session:
    """The phases of one GPU.

    Args:
        send: Called with keyword arguments for each message to the parent.
        turns: The queue for lone copies.
    """

    def __init__(self, backend: Backend, assignment: Assignment, send: Send, turns: Turns) -> None:
        self._turns = turns
        self._backend = backend
        self._assignment = assignment
        self._send = send
        self._comparison = Comparison()
        self._confirmations = 0

    def run(self) -> None:
        """Everything but the import, which came before, and the cool-down, which needs no worker."""
        budget = self._assignment.budget
        backend = self._backend
        self._send(kind="versions", versions=backend.versions())
        with self._turns.alone() as alone:
            self._phase("copies")
            h2d, d2h = backend.copies_alone(budget.copies_s) if alone else (_NOT_ALONE, _NOT_ALONE)
        self._send(kind="copies_alone", h2d=h2d, d2h=d2h)
        self._phase("ceiling")
        dtype = self._assignment.workload.dtype
        self._send(kind="ceiling", tflops=backend.ceiling(budget.ceiling_s, dtype))
        self._phase("build")
        backend.build(self._assignment.workload)
        self._turns.wait_for_others()
        self._phase("warm-up")
        backend.start_streaming()
        self._warm_up(time.monotonic() + budget.warm_up_s)
        backend.start_streaming()
        self._phase("compute")
        self._compute(self._compute_end())
        self._backend.stop_streaming()
        self._send_totals()
        self._send(kind="done", t=self._now())

    def _warm_up(self, end: float) -> None:
        """Passes that are not measured, but whose NaNs and infinities count."""
        while True:
            started = time.monotonic()
            self._send(kind="warm_up", non_finite=self._backend.iterate().non_finite)
            if time.monotonic() >= end:
                return
            self._pace(started)

    def _compute_end(self) -> float:
        budget = self._assignment.budget
        end = time.monotonic() + budget.compute_s
        if budget.total_s is None:
            return end
        return min(end, self._assignment.started + budget.total_s - budget.cool_down_s - WRAP_UP_S)

    def _compute(self, end: float) -> None:
        flips = [*([self._assignment.flip] if self._assignment.flip else []), *self._backend.own_faults()]
        number = 0
        longest = 0.0
        while number < self._assignment.budget.least_iterations or time.monotonic() + longest < end:
            started = time.monotonic()
            number += 1
            for flip in flips:
                if number == flip.iteration:
                    self._backend.flip(flip)
            done = self._backend.iterate()
            mismatch = self._comparison.see(number, done.digests)
            if number == 1:
                self._send(kind="reference", digests=self._comparison.reference)
            self._send(
                kind="iteration",
                number=number,
                t=self._now(),
                seconds=done.seconds,
                compared=self._comparison.compared,
                non_finite=done.non_finite,
            )
            if mismatch:
                self._send(kind="mismatch", mismatch=self._confirm(mismatch).document())
            self._send_totals()
            self._pace(started)
            longest = max(longest, time.monotonic() - started)

    def _confirm(self, mismatch: Mismatch) -> Mismatch:
        """Runs the model up to the block once more, on the spot."""
        if self._confirmations >= CONFIRMED_MISMATCHES:
            return mismatch
        self._confirmations += 1
        again = self._backend.block_digest(mismatch.block)
        return replace(mismatch, confirmed=again != mismatch.expected)

    def _send_totals(self) -> None:
        totals = self._backend.copy_totals()
        self._send(
            kind="copies",
            h2d=totals.h2d_gbps,
            d2h=totals.d2h_gbps,
            bytes_h2d=totals.bytes_h2d,
            bytes_d2h=totals.bytes_d2h,
            content_errors=totals.content_errors,
            content_checks=totals.content_checks,
        )

    def _pace(self, started: float) -> None:
        left = started + self._assignment.budget.pace_s - time.monotonic()
        if left > 0:
            time.sleep(left)

    def _phase(self, name: str) -> None:
        self._send(kind="phase", name=name, t=self._now())

    def _now(self) -> float:
        return time.monotonic() - self._assignment.started


def assignment_document(assignment: Assignment) -> Dict[str, Any]:
    """An assignment as plain data, for the worker's command line."""
    return asdict(assignment)


def assignment_from(data: Dict[str, Any]) -> Assignment:
    """The assignment that `assignment_document` gave."""
    flip = data["flip"]
    return Assignment(
        workload=Workload(**data["workload"]),
        budget=Budget(**data["budget"]),
        started=data["started"],
        flip=Flip(**flip) if flip else None,
    )
