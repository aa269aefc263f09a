"""The model with copies both ways, every block of every iteration compared bit for bit."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any, Dict, List, Optional, Tuple

from ...node import reading
from ..digests import Findings, Mismatch
from ..stats import stats_reading, summary
from ..workload import Workload
from ._phase import NOT_REACHED, Document, Part, Phase, Stage, Take, View, not_reached

# Repeating a pass costs a pass; a fault that stays is confirmed well enough by the first few.
CONFIRMED_MISMATCHES = 3


def _run(stage: Stage, seconds: float) -> None:
    # A workload may ask for more than its level gives, never for less.
    end = time.monotonic() + max(seconds, stage.workload.duration_s)
    least = max(stage.budget.least_iterations, stage.workload.least_iterations)
    stage.backend.start_streaming()
    flips = [*([stage.assignment.flip] if stage.assignment.flip else []), *stage.backend.own_faults()]
    done, longest = 0, 0.0
    while done < least or time.monotonic() + longest < end:
        started = time.monotonic()
        done += 1
        stage.iteration += 1
        for flip in flips:
            if stage.iteration == flip.iteration:
                stage.backend.flip(flip)
        _iterate(stage)
        stage.pace(started)
        longest = max(longest, time.monotonic() - started)
    stage.backend.stop_streaming()
    _send_totals(stage)


def _iterate(stage: Stage) -> None:
    done = stage.backend.iterate()
    known = len(stage.comparison.references)
    mismatch = stage.comparison.see(stage.iteration, done.digests, done.batch)
    if len(stage.comparison.references) > known:
        stage.send(kind="reference", batch=done.batch, digests=done.digests)
    stage.send(
        kind="iteration",
        number=stage.iteration,
        t=stage.now(),
        seconds=done.seconds,
        flops=stage.workload.flops_of(done.batch),
        compared=stage.comparison.compared,
        non_finite=done.non_finite,
        subnormal=done.subnormal,
    )
    stage.send(kind="pool", reserved_and_used=stage.backend.memory_in_use())
    if mismatch:
        stage.send(kind="mismatch", mismatch=_confirm(stage, mismatch).document())
    _send_totals(stage)


def _confirm(stage: Stage, mismatch: Mismatch) -> Mismatch:
    """Runs the model up to the block once more, on the spot."""
    if stage.confirmations >= CONFIRMED_MISMATCHES:
        return mismatch
    stage.confirmations += 1
    again = stage.backend.digest_again(mismatch.place)
    return replace(mismatch, confirmed=again != mismatch.expected)


def _send_totals(stage: Stage) -> None:
    totals = stage.backend.copy_totals()
    stage.send(
        kind="copies",
        round=stage.round,
        h2d=totals.h2d_gbps,
        d2h=totals.d2h_gbps,
        bytes_h2d=totals.bytes_h2d,
        bytes_d2h=totals.bytes_d2h,
        content_errors=totals.content_errors,
        content_checks=totals.content_checks,
    )


class ComputePart(Part):
    """Iterations, their digests, and the copies beside them.

    Attributes:
        seconds: Of each measured iteration.
    """

    def __init__(self, workload: Workload) -> None:
        super().__init__(workload)
        self.seconds: List[float] = []
        self._rates: List[float] = []
        # Of each batch size; most workloads have one.
        self._references: Dict[int, Tuple[str, ...]] = {}
        self._compared = 0
        self._findings = Findings()
        self._non_finite: Optional[int] = None
        self._subnormal = 0
        # The last totals of each round; errors and checks are counted on over all of them.
        self._copies: Dict[int, Dict[str, Any]] = {}
        self._pool: List[Tuple[int, int]] = []

    def takes(self) -> Dict[str, Take]:
        """Also what the warm-up says: its NaNs count."""
        return {
            "warm_up": lambda m: self._count_non_finite(m["non_finite"]),
            "reference": self._take_reference,
            "iteration": self._take_iteration,
            "mismatch": lambda m: self._findings.add(m["mismatch"]),
            "copies": self._take_copies,
            "pool": lambda m: self._pool.append(tuple(m["reserved_and_used"])),
        }

    @property
    def mismatches(self) -> int:
        """Iterations whose digests differed from the reference."""
        return self._findings.count

    def tflops(self) -> Optional[float]:
        """The median iteration's FLOPs over its time; None before the first."""
        if not self._rates:
            return None
        return float(summary(self._rates)["median"])

    def document(self, view: View) -> Document:  # noqa: ARG002
        """Everything the compute phases found."""
        tflops = self.tflops()
        return {
            "iterations": len(self.seconds),
            "iteration_s": stats_reading(self.seconds, NOT_REACHED),
            "achieved_tflops": not_reached() if tflops is None else reading.ok(tflops),
            "digests": self._digests(),
            "non_finite_values": not_reached() if self._non_finite is None else reading.ok(self._non_finite),
            "subnormal_values": self._subnormal_reading(),
            "copies": self._copy_document(),
            "memory_pool": self._pool_document(),
        }

    def _digests(self) -> Dict[str, Any]:
        if not self._compared:
            return reading.error(
                "%s: no two iterations were compared" % NOT_REACHED if self._references else NOT_REACHED
            )
        largest = self._references[max(self._references)]
        several = self._references if len(self._references) > 1 else {}
        return reading.ok(
            {
                "reference": list(largest),
                "references": {str(batch): list(digests) for batch, digests in several.items()},
                "iterations_compared": self._compared,
                "mismatch_count": self._findings.count,
                "mismatches": self._findings.kept,
            }
        )

    def _subnormal_reading(self) -> Dict[str, Any]:
        if not self.workload.training:
            return reading.not_supported("the workload %s has no backward pass" % self.workload.name)
        return reading.ok(self._subnormal) if self.seconds else not_reached()

    def _copy_document(self) -> Document:
        rounds = list(self._copies.values())
        last = rounds[-1] if rounds else {}
        return {
            "during_h2d_gbps": _least([totals["h2d"] for totals in rounds]),
            "during_d2h_gbps": _least([totals["d2h"] for totals in rounds]),
            "bytes_h2d": sum(totals["bytes_h2d"] for totals in rounds),
            "bytes_d2h": sum(totals["bytes_d2h"] for totals in rounds),
            "content_errors": last.get("content_errors", 0),
            "content_checks": last.get("content_checks", 0),
        }

    def _pool_document(self) -> Dict[str, Any]:
        """Reserved over in use: how much of the pool lies in pieces that nobody can use."""
        if not self._pool:
            return not_reached()
        if not any(reserved for reserved, _ in self._pool):
            return reading.not_supported("this backend has no memory pool")
        ratios = [reserved / max(1, used) for reserved, used in self._pool]
        most = max(reserved for reserved, _ in self._pool)
        return reading.ok({"reserved_bytes": most, "reserved_of_used": summary(ratios)})

    def _take_reference(self, message: Dict[str, Any]) -> None:
        self._references[message["batch"]] = tuple(message["digests"])

    def _take_iteration(self, message: Dict[str, Any]) -> None:
        self.seconds.append(message["seconds"])
        self._rates.append(message["flops"] / message["seconds"] / 1e12)
        self._subnormal += message["subnormal"]
        self._compared = message["compared"]
        self._count_non_finite(message["non_finite"])

    def _take_copies(self, message: Dict[str, Any]) -> None:
        self._copies[message["round"]] = message

    def _count_non_finite(self, count: int) -> None:
        self._non_finite = (self._non_finite or 0) + count


def _least(readings: List[Dict[str, Any]]) -> Dict[str, Any]:
    """The slowest round's rate; one that could not be read is not passed over."""
    unread = next((one for one in readings if one["state"] != "ok"), None)
    if unread or not readings:
        return unread or not_reached()
    return reading.ok(min(one["value"] for one in readings))


PHASE = Phase(
    name="compute",
    words="the model with copies both ways, every block compared",
    run=_run,
    part=ComputePart,
)
