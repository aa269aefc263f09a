"""What every backend can do; the session above knows nothing else of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Dict, Tuple

from ..inject import Flip
from ..workload import Workload

ReadingDict = Dict[str, Any]


@dataclass(frozen=True)
class Iteration:
    """One pass of the whole model, synchronised.

    Attributes:
        seconds: From the first launch until the device was done.
        digests: One a block, then one of the final output; 16 hex digits each.
        non_finite: NaN and infinite values in the last block's output. Every block adds to one
            residual stream, so a value that became non-finite on the way is still so there.
    """

    seconds: float
    digests: Tuple[str, ...]
    non_finite: int


@dataclass(frozen=True)
class CopyTotals:
    """Host memory copies since streaming started. GB/s are decimal, per direction, both ways at once."""

    h2d_gbps: ReadingDict
    d2h_gbps: ReadingDict
    bytes_h2d: int
    bytes_d2h: int
    content_errors: int
    content_checks: int


class Backend(ABC):
    """One GPU, or what stands in for it."""

    name: str

    @abstractmethod
    def versions(self) -> Dict[str, str]:
        """Versions of what computes, by name."""

    @abstractmethod
    def copies_alone(self, seconds: float) -> Tuple[ReadingDict, ReadingDict]:
        """GB/s host to device and device to host, one after the other, `seconds` each."""

    @abstractmethod
    def ceiling(self, seconds: float, dtype: str) -> ReadingDict:
        """TFLOP/s of a large matrix product."""

    @abstractmethod
    def build(self, workload: Workload) -> None:
        """Makes weights and input on the device."""

    @abstractmethod
    def start_streaming(self) -> None:
        """From now on iterations run with copies both ways; totals count from here."""

    @abstractmethod
    def iterate(self) -> Iteration:
        """One pass of the model."""

    @abstractmethod
    def block_digest(self, block: int) -> str:
        """Runs the model again up to a block (or, with block = depth, to the end): its digest now."""

    def stop_streaming(self) -> None:  # noqa: B027 - simulated copies are never under way
        """Ends the copies; copy_totals then knows the outcome of all of them."""

    @abstractmethod
    def copy_totals(self) -> CopyTotals:
        """Totals since start_streaming."""

    @abstractmethod
    def flip(self, flip: Flip) -> None:
        """Flips one bit of one weight."""

    def own_faults(self) -> Tuple[Flip, ...]:
        """Faults that a simulated device has; real ones do not announce theirs."""
        return ()

    def close(self) -> None:  # noqa: B027 - most have nothing to end
        """Ends the load."""
