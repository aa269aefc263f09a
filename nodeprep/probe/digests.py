"""Holding each iteration's digests against the first one's of its batch size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Sequence, Tuple

KEPT = 100


@dataclass(frozen=True)
class Mismatch:
    """The first digest of an iteration that differed from the reference.

    Later ones of the same iteration build on that output and differ because of it, so they are
    no findings of their own.

    Attributes:
        block: The block it is of; equal to the model's depth for the final output, and for the weights of
            the embedding.
        part: "weights" for what lay in memory, "output", or "gradient" for what a backward pass gave.
        batch: Images of the iteration.
        place: Where in the iteration's list of digests.
    """

    iteration: int
    block: int
    expected: str
    got: str
    confirmed: Optional[bool] = None
    part: str = "output"
    batch: int = 0
    place: int = 0

    def document(self) -> Dict[str, Any]:
        """As nodeprep.probe/1 has it."""
        return {
            "iteration": self.iteration,
            "block": self.block,
            "expected": self.expected,
            "got": self.got,
            "confirmed": self.confirmed,
            "part": self.part,
            "batch": self.batch,
        }


def block_of(place: int, depth: int) -> Tuple[int, str]:
    """The block and the part of it that a place in an iteration's list of digests stands for.

    The list has the outputs of all blocks, the final output, the weights of all blocks, those of the
    embedding, and in training the gradients from the last block back to the first.
    """
    if place <= depth:
        return place, "output"
    if place <= 2 * depth + 1:
        return place - depth - 1, "weights"
    return 3 * depth + 1 - place, "gradient"


class Comparison:
    """The references (the first iteration seen of each batch size) and what differed from them since.

    Args:
        depth: Blocks of the model.

    Attributes:
        references: Batch size to the digests of its first iteration.
    """

    def __init__(self, depth: int) -> None:
        self.references: Dict[int, Tuple[str, ...]] = {}
        self.compared = 0
        self._depth = depth

    def see(self, iteration: int, digests: Sequence[str], batch: int = 0) -> Optional[Mismatch]:
        """Takes the first iteration of a batch size as its reference and compares each later one with it."""
        reference = self.references.get(batch)
        if reference is None:
            self.references[batch] = tuple(digests)
            return None
        self.compared += 1
        wrong = [place for place, expected in enumerate(reference) if digests[place] != expected]
        if not wrong:
            return None
        # Weights that changed are the cause of whatever else did.
        place = next((place for place in wrong if block_of(place, self._depth)[1] == "weights"), wrong[0])
        block, part = block_of(place, self._depth)
        return Mismatch(
            iteration, block, reference[place], digests[place], part=part, batch=batch, place=place
        )


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
