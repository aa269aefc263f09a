"""NodeSpec: what one node should be, resolved from policy, profile and the node's own GPUs."""

from __future__ import annotations

from dataclasses import dataclass

from nodeprep.model.policy import Policy, Waiver


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """A number something is held against, with where it comes from."""

    value: float
    unit: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """A GPU generation as data (nodeprep/profiles/ID.yaml). None = no figure known: say so, do not guess."""

    id: str
    title: str
    match_names: tuple[str, ...]
    """Shell patterns on the NVML product name; the first profile in which one matches is taken."""
    has_fabric: bool | None
    """True: must register with the NVLink fabric. None: depends on the board (decided by what NVML says)."""
    pcie_gen: Limit | None
    pcie_width_lanes: Limit | None
    temperature_margin_c: Limit
    """Least distance to the slowdown temperature under load."""
    replays_per_lane_minute: Limit | None
    power_of_limit_fraction: Limit | None
    """Least mean power during compute, as a fraction of the enforced limit."""
    probe_tflops: Limit | None
    """Floor of the default workload in fp16, TFLOP/s."""
    ceiling_tflops: Limit | None
    """Floor of the 16384^3 matrix product of the same run, in fp16 or bf16, TFLOP/s."""
    probe_of_ceiling_fraction: Limit
    """Floor relative to the matrix-product ceiling of the same run."""
    copy_h2d_gbps: Limit | None
    copy_d2h_gbps: Limit | None
    """Floors of lone copies, GB/s (decimal), at the profile's own generation and width."""
    p2p_nvlink_gbps: Limit | None
    """Floor of one-way copies to another GPU, GB/s for each NVLink that carries them."""
    all_reduce_gbps: Limit | None
    """Floor of all-reduce bus bandwidth without NVLink multicast, where all NVLinks lead to NVSwitches."""
    hbm_copy_gbps: Limit | None
    """Floor of copies within device memory, bytes read and written, GB/s (decimal)."""
    hbm_of_peak_fraction: Limit
    """The same relative to what the memory's clock and width allow."""
    transient_peak_fraction: Limit | None
    transient_trough_fraction: Limit | None
    """What instantaneous power must reach, up and down, at some period of a square wave; of the limit."""
    spread_fraction: Limit
    """A GPU this far below the best of its node is a fault."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSpec:
    """Everything the checks and knobs of one node need to know."""

    host: str
    policy: Policy
    policy_digest: str
    profile: Profile
    pcie_gen: Limit | None
    """From policy.pcie_link.gen, else the profile."""
    pcie_width_lanes: Limit | None
    waivers: tuple[Waiver, ...]
    """Those that name this host and had not expired when the spec was made."""
    expired_waivers: tuple[Waiver, ...] = ()
