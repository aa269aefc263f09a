"""Holding each iteration's digests against the first one's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Sequence, Tuple

KEPT = 100


@dataclass(frozen=True)
class Mismatch:
    """The first block of an iteration whose output bits differed from the reference.

    Later blocks of the same iteration build on that output and differ because of it, so they are
    no findings of their own. A block equal to the model's depth means the final output.
    """

    iteration: int
    block: int
    expected: str
    got: str
    confirmed: Optional[bool] = None

    def document(self) -> Dict[str, Any]:
        """As nodeprep.probe/1 has it."""
        return {
            "iteration": self.iteration,
            "block": self.block,
            "expected": self.expected,
            "got": self.got,
            "confirmed": self.confirmed,
        }


class Comparison:
    """The reference (the first iteration seen) and what differed from it since."""

    def __init__(self) -> None:
        self.reference: Tuple[str, ...] = ()
        self.compared = 0

    def see(self, iteration: int, digests: Sequence[str]) -> Optional[Mismatch]:
        """Takes the first iteration as the reference and compares each later one with it."""
        if not self.reference:
            self.reference = tuple(digests)
            return None
        self.compared += 1
        for block, expected in enumerate(self.reference):
            if digests[block] != expected:
                return Mismatch(iteration, block, expected, digests[block])
        return None


class Findings:
    """All mismatches of one GPU, the first 100 in full."""

    def __init__(self) -> None:
        self.count = 0
        self.kept: List[Dict[str, Any]] = []

    def add(self, mismatch: Dict[str, Any]) -> None:
        """Counts one, and keeps it while there is room."""
        self.count += 1
        if len(self.kept) < KEPT:
            self.kept.append(mismatch)
