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
        subnormal: Subnormal values in the gradients after GELU; 0 without a backward pass.
        batch: Images of the pass; digests can be compared between passes of one batch size only.
    """

    seconds: float
    digests: Tuple[str, ...]
    non_finite: int
    subnormal: int = 0
    batch: int = 0


@dataclass(frozen=True)
class CopyTotals:
    """Host memory copies since streaming started. GB/s are decimal, per direction, both ways at once."""

    h2d_gbps: ReadingDict
    d2h_gbps: ReadingDict
    bytes_h2d: int
    bytes_d2h: int
    content_errors: int
    content_checks: int


@dataclass(frozen=True)
class MemoryRates:
    """Device memory, GB/s (decimal).

    Attributes:
        copy_gbps: A copy from device memory to device memory, bytes read and bytes written.
        read_gbps: Reading alone.
        write_gbps: Writing alone.
        peak_gbps: What clock and width of the memory allow.
    """

    copy_gbps: ReadingDict
    read_gbps: ReadingDict
    write_gbps: ReadingDict
    peak_gbps: ReadingDict


@dataclass(frozen=True)
class MemoryFault:
    """A word that did not hold what was written to it.

    Attributes:
        offset_bytes: Place in the memory that was walked, which is not the physical address.
        again: It was still wrong when it was read once more. A word right by then was read wrongly.
    """

    offset_bytes: int
    pattern: str
    expected: str
    got: str
    again: bool


@dataclass(frozen=True)
class MemoryWalk:
    """What a walk over the free device memory found.

    Attributes:
        walked_bytes: Memory that was written and compared with every pattern.
        free_bytes: What was free before; a reserve of it is left alone.
        total_bytes: All there is.
        passes: For each pattern, how often the memory was written and compared.
        gbps: For each pattern, bytes written and read over the time that took.
        errors: Words that differed; the first of them are in `faults`.
    """

    walked_bytes: int
    free_bytes: int
    total_bytes: int
    passes: Dict[str, int]
    gbps: Dict[str, float]
    errors: int
    faults: Tuple[MemoryFault, ...]


@dataclass(frozen=True)
class Bursts:
    """A square wave of load.

    Attributes:
        bursts: Periods of load and rest.
        products: Matrix products in them.
        compared: Bursts whose last product's digest was compared with the first burst's of the run.
        mismatches: Those that differed.
    """

    bursts: int
    products: int
    compared: int
    mismatches: int


class Backend(ABC):
    """One GPU, or what stands in for it."""

    name: str
    # Below this rate of samples some of what the driver shows is missed: that of an H200 renews its
    # instantaneous power 8 to 10 times a second (measured).
    burst_samples_per_s = 20.0

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
    def memory_rates(self, seconds: float) -> MemoryRates:
        """Copying, reading and writing device memory, about `seconds` in all."""

    @abstractmethod
    def walk_memory(self, seconds: float) -> MemoryWalk:
        """Writes every pattern over all free memory and compares it: once, and again while there is time."""

    @abstractmethod
    def bursts(self, period_s: float, duty: float, count: int) -> Bursts:
        """Full load for a part of each period, then none; GPUs of one node keep step."""

    def memory_in_use(self) -> Tuple[int, int]:
        """Bytes that the framework's pool has reserved and those in use; (0, 0) where there is no pool."""
        return 0, 0

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
    def digest_again(self, place: int) -> str:
        """Runs the last pass's batch again as far as needed: the digest at this place of its list now."""

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
