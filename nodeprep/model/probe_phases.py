"""What the probe's phases besides the model itself found; parts of `nodeprep.probe/1`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from nodeprep.model.probe_stats import Stats
from nodeprep.model.reading import Reading


@dataclass(frozen=True, slots=True, kw_only=True)
class HbmBandwidth:
    """Device memory, decimal GB/s; the slowest round's."""

    copy_gbps: Reading[float]
    """Device memory to device memory: bytes read and bytes written."""
    read_gbps: Reading[float]
    write_gbps: Reading[float]
    peak_gbps: Reading[float]
    """What the memory's clock and width allow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryFault:
    """A word that did not hold what was written to it."""

    offset_bytes: int
    """Place in the memory that was walked; not a physical address."""
    pattern: str
    expected: str
    got: str
    again: bool
    """Still wrong when it was read once more. If not, the place is that of its block of 16 MiB."""
    round: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class PatternWalk:
    """One pattern over all walks."""

    passes: int
    gbps: float
    """Bytes written and read; of the slowest walk."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HbmWalk:
    """All free device memory, written with patterns and compared."""

    walked_bytes: int
    free_bytes: int
    total_bytes: int
    """All three of the walk that covered most."""
    walks: int
    patterns: Mapping[str, PatternWalk]
    errors: int
    """Words, over all walks."""
    faults: tuple[MemoryFault, ...]
    """The first of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BurstPower:
    """Instantaneous draw during a square wave."""

    samples: int
    peak_w: float
    trough_w: float
    mean_w: float
    peak_of_limit: float
    trough_of_limit: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BurstPeriod:
    """A square wave of one period."""

    period_s: float
    duty: float
    bursts: int
    power: Reading[BurstPower]


@dataclass(frozen=True, slots=True, kw_only=True)
class Transients:
    """Full load and none in turn."""

    periods: tuple[BurstPeriod, ...]
    bursts_compared: int
    """Bursts whose last matrix product was compared with the first burst's, bit for bit."""
    mismatch_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Fall:
    """How a value fell after the load."""

    first: float
    last: float
    half_s: float
    """Until half of the fall was over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CoolDown:
    """The time after the load."""

    seconds: float
    power_w: Reading[Fall]
    temperature_c: Reading[Fall]
    memory_temperature_c: Reading[Fall]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPool:
    """The framework's memory pool during compute."""

    reserved_bytes: int
    """The most."""
    reserved_of_used: Stats
    """Reserved over in use, one value an iteration."""


@dataclass(frozen=True, slots=True, kw_only=True)
class XidEvent:
    """An event that NVML told of while the probe ran."""

    t_s: float
    xid: int | None
    """None: the event has no Xid."""
    kind: str
    """NVML's event type, "0x8" for a critical Xid."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HopErrors:
    """AER counters of one function on the GPU's path, before and after."""

    address: str
    correctable: Reading[int]
    non_fatal: Reading[int]
    fatal: Reading[int]
    """How many were added during the run."""
