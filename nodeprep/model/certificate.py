"""`nodeprep.certificate/1`: the predicate of the signed statement about one node."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from nodeprep.model.result import CheckResult, Verdict

PREDICATE_TYPE = "https://nodeprep.dev/certificate/v1"


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuIdentity:
    """What makes a GPU this one and not its neighbour."""

    pci_address: str
    uuid: str
    serial: str
    name: str
    vbios_version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Hardware identity; its digest is the statement's subject. Unreadable parts read "unreadable: WHY"."""

    product: str
    product_serial: str
    product_uuid: str
    board: str
    board_serial: str
    bios_version: str
    bmc: str
    cpu_model: str
    cpu_count: int | None
    memory_bytes: int | None
    gpus: tuple[GpuIdentity, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """The state the certificate vouches for; drift compares it with the node as it is now.

    Flat on purpose: one key a fact, so that drift names exactly what changed. Keys are like
    "kernel.cmdline", "driver.version", "gpu.0000:17:00.0.power_limit_w".
    """

    values: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeSummary:
    """The probe in a few numbers per GPU; the whole result is named by digest."""

    state: str
    backend: str
    duration_s: float
    injected: str
    gpus: Mapping[str, Mapping[str, float | int | str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """The whole predicate."""

    host: str
    run: str
    verdict: Verdict
    reasons: tuple[str, ...]
    """Why not "certified": one line a FAIL or ERROR."""
    level: str
    workload: str
    simulated: bool
    issued: str
    expires: str
    nodeprep_version: str
    profile: str
    identity: Identity
    configuration: Configuration
    checks: tuple[CheckResult, ...]
    probe: ProbeSummary | None
    digests: Mapping[str, str]
    """SHA-256 of: policy, content (the package that judged), probe (the .pyz), workload (as it ran),
    facts_before, facts_after, probe_result."""
    schema: Literal["nodeprep.certificate/1"] = field(default="nodeprep.certificate/1")
