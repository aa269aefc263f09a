"""`nodeprep.probe/1`: what a node did under load. Written on the node by nodeprep/probe/."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from nodeprep.model.probe_peers import NOT_MEASURED, Peers
from nodeprep.model.probe_phases import (
    CoolDown,
    HbmBandwidth,
    HbmWalk,
    HopErrors,
    MemoryPool,
    Transients,
    XidEvent,
)
from nodeprep.model.probe_soak import Soak
from nodeprep.model.probe_stats import Stats
from nodeprep.model.reading import Reading

NO_SOAK: Reading[Any] = Reading("not_supported", detail="only the level soak is one")


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """The workload as it ran; `digest` is over these fields only."""

    name: str
    digest: str
    width: int
    depth: int
    heads: int
    ffn: int
    patch: int
    image_height: int
    image_width: int
    batch: int
    dtype: str
    seed: int
    launch: Literal["explicit", "graph"] = "explicit"
    batch_least: int = 0
    """Fewest images of an iteration, `batch` being the most; 0: always `batch`."""
    mode: Literal["inference", "training"] = "inference"
    gradient_norm_max: float = 0.0
    input: Literal["resident", "copied", "prefetched"] = "resident"
    kernels: str = "plain"
    attention: str = "auto"
    memory_pool_gib: int = 0
    pcie_direction: Literal["both", "h2d", "d2h"] = "both"
    pcie_share: float = 1.0
    burst_duty: float = 1.0
    burst_period_s: float = 0.0
    duration_s: float = 0.0
    loops: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Mismatch:
    """One block whose output bits differed from the reference."""

    iteration: int
    block: int
    expected: str
    got: str
    confirmed: bool | None
    """A repeat on the spot gave again another answer than the reference (True) or the reference (False)."""
    part: Literal["weights", "output", "gradient"] = "output"
    """Of the block: its weights in memory, what it gave forward, or the gradients of its backward pass."""
    batch: int = 0
    """Images of that iteration; 0 where results do not say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Digests:
    """Bitwise comparison of every block's output over all iterations."""

    reference: tuple[str, ...]
    """One digest a block, one of the final output, one of each block's weights, one of the embedding's, in
    training one of each block's gradients from the last block to the first; of the first measured
    iteration of the largest batch."""
    iterations_compared: int
    mismatch_count: int
    mismatches: tuple[Mismatch, ...]
    """The first 100."""
    references: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """For a range of batch sizes: the reference of each, by the number of images."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Copies:
    """Pinned host memory copies. GB/s are decimal and per direction."""

    alone_h2d_gbps: Reading[float]
    alone_d2h_gbps: Reading[float]
    during_h2d_gbps: Reading[float]
    during_d2h_gbps: Reading[float]
    """Both ways at once while the model runs."""
    bytes_h2d: int
    bytes_d2h: int
    content_errors: int
    content_checks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Telemetry:
    """Summary of the samples taken during the compute phase, and where all samples are."""

    file: str
    """Name of the columnar file in the result folder."""
    period_ms: float
    samples: int
    errors: int
    longest_gap_ms: float
    power_w: Reading[Stats]
    power_instant_w: Reading[Stats]
    temperature_c: Reading[Stats]
    memory_temperature_c: Reading[Stats]
    margin_c: Reading[Stats]
    sm_mhz: Reading[Stats]
    utilization_percent: Reading[Stats]
    pcie_rx_gbps: Reading[Stats]
    pcie_tx_gbps: Reading[Stats]
    link_gen: Reading[Stats]
    link_width_lanes: Reading[Stats]
    event_reasons_union: Reading[int]
    """All clock-event reason bits seen."""
    event_reason_samples: Mapping[str, int]
    """For each bit seen ("0x4"): in how many samples."""
    enforced_limit_w: Reading[float]
    trouble: str = ""
    """Why sampling ended before the run did; "" when it did not. The samples then prove nothing."""
    cpu_of_run_fraction: Reading[float] = NOT_MEASURED
    """CPU time of the sampling process, for all GPUs, over the time it ran."""
    power_average_w: Reading[Stats] = NOT_MEASURED
    memory_utilization_percent: Reading[Stats] = NOT_MEASURED
    memory_used_gib: Reading[Stats] = NOT_MEASURED


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """A named stretch of the run, seconds since its start."""

    name: str
    start_s: float
    end_s: float
    round: int = 1
    """Levels repeat their phases; from 1."""


GpuRunState = Literal["completed", "interrupted", "failed", "skipped"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuRun:
    """What one GPU did."""

    pci_address: str
    uuid: str
    name: str
    state: GpuRunState
    error: str = ""
    iterations: int = 0
    iteration_s: Reading[Stats]
    achieved_tflops: Reading[float]
    """FLOPs of the workload over the median iteration time."""
    ceiling_tflops: Reading[float]
    """Large matrix product of the same dtype, measured in the same run."""
    digests: Reading[Digests]
    non_finite_values: Reading[int]
    copies: Copies
    telemetry: Telemetry
    subnormal_values: Reading[int] = field(default_factory=lambda: Reading.not_supported("not counted"))
    """Subnormal values in the gradients after GELU, over all iterations; counts, not a fault."""
    phases: tuple[Phase, ...] = ()
    hbm_bandwidth: Reading[HbmBandwidth] = NOT_MEASURED
    hbm_walk: Reading[HbmWalk] = NOT_MEASURED
    transients: Reading[Transients] = NOT_MEASURED
    cool_down: Reading[CoolDown] = NOT_MEASURED
    memory_pool: Reading[MemoryPool] = NOT_MEASURED
    xid_events: Reading[tuple[XidEvent, ...]] = NOT_MEASURED
    """What NVML's event set told; an empty list only where it was listened to from start to end."""
    aer_path: Reading[tuple[HopErrors, ...]] = NOT_MEASURED
    """Errors added during the run, hop by hop from the root port to the GPU."""


ProbeState = Literal["completed", "interrupted", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeResult:
    """The whole document."""

    host: str
    simulated: bool
    backend: Literal["torch", "tensorrt", "numpy"]
    state: ProbeState
    error: str
    """Why it is not "completed"; "" when it is."""
    hint: str
    level: str
    workload: Workload
    injected: str
    """What fault was asked for ("flip:block=7,bit=0"); anything but "" can never certify."""
    probe_digest: str
    """SHA-256 of the .pyz that ran."""
    versions: Mapping[str, str]
    started_at: str
    duration_s: float
    gpus: tuple[GpuRun, ...]
    run: str = ""
    """Id of the run it belongs to; "" when the probe was started by hand."""
    peers: Reading[Peers] = NOT_MEASURED
    """What the GPUs did together; not supported for a single GPU."""
    soak: Reading[Soak] = NO_SOAK
    """Not supported for every level but soak."""
    schema: Literal["nodeprep.probe/1"] = field(default="nodeprep.probe/1")
