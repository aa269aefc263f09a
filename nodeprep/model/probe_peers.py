"""The part of `nodeprep.probe/1` about GPUs together. Written on the node by nodeprep/probe/peers/."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from nodeprep.model.reading import Reading

NOT_MEASURED: Reading[Any] = Reading("error", detail="not measured by the probe that wrote this")


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerRank:
    """The process of one GPU."""

    rank: int
    gpu: str
    error: str = ""
    """Why it could not do its part; "" when it did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyRound:
    """Host memory copies of some GPUs at the same time. GB/s are decimal, one direction at a time."""

    kind: Literal["alone", "port", "numa", "all"]
    at: str
    """Address of the port that all of them are behind, or number of their NUMA node; "" for none."""
    gpus: tuple[str, ...]
    h2d: tuple[Reading[float], ...]
    """GB/s of each GPU, in the order of `gpus`."""
    d2h: tuple[Reading[float], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerPair:
    """Copies from one GPU to another. GB/s are decimal."""

    source: str
    target: str
    access: Reading[bool]
    """Whether the source reaches the target's memory itself; if not, copies go through the host."""
    nvlinks: Reading[int]
    """NVLinks that should carry them: those to NVSwitches, and those to the other GPU."""
    gbps: Reading[float]
    both_ways_gbps: Reading[float]
    """Both directions at once, added up; the same in both entries of a pair."""
    content_checks: int
    content_errors: int
    """Copies that the GPU at the far end found changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NvLinkCounter:
    """One kind of error, summed over the links of a GPU."""

    name: str
    count: Reading[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class NvLinkState:
    """All NVLinks of one GPU at one time."""

    links: int
    active: Reading[int]
    counters: tuple[NvLinkCounter, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NvLinksAround:
    """The NVLinks of one GPU before and after the GPUs were measured together."""

    gpu: str
    before: Reading[NvLinkState]
    after: Reading[NvLinkState]


@dataclass(frozen=True, slots=True, kw_only=True)
class AllReduceSize:
    """All-reduce of one size; bandwidths as nccl-tests define them."""

    bytes: int
    seconds: float
    algorithm_gbps: float
    bus_gbps: float
    """algorithm_gbps x 2 (n - 1) / n: what the links carry, whatever the number of GPUs."""
    wrong_elements: int
    """Over all ranks, compared with the exact sums."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AllReduce:
    """All-reduce over all GPUs."""

    sizes: Reading[tuple[AllReduceSize, ...]]
    """Ascending."""
    hung: tuple[PeerRank, ...]
    """Ranks that did not arrive, or, when all arrived, those that did not leave."""
    transport: Literal["nccl", "gloo", "ring", ""]
    environment: Mapping[str, str]
    """What NCCL was told, as NCCL_NVLS_ENABLE=0: no NVLink multicast."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Peers:
    """What the GPUs of a node did together."""

    gpus: tuple[str, ...]
    """In the order of the ranks: all that got through their own load and were still there after it."""
    absent: Mapping[str, str]
    """GPUs that got through their own load and that NVML could not open after it, with what it said."""
    ranks: tuple[PeerRank, ...]
    versions: Mapping[str, str]
    topology: Reading[int]
    """How many groups of GPUs share a port or a NUMA node; an error when the PCI bus could not be read."""
    rounds: tuple[CopyRound, ...]
    pairs: tuple[PeerPair, ...]
    nvlinks: tuple[NvLinksAround, ...]
    all_reduce: AllReduce
    duration_s: float
