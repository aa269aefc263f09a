"""A run as a report sees it: everything known about every requested host."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from nodeprep.model.certificate import Certificate
from nodeprep.model.facts import NodeFacts
from nodeprep.model.plan import Plan
from nodeprep.model.probe import Phase, ProbeResult

HostState = Literal["unknown", "running", "done", "failed", "unreachable", "missing"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TelemetrySeries:
    """`nodeprep.telemetry/1`: the samples of one GPU, column by column; None where a sample failed.

    Columns: t_s, and those of nodeprep/node/nvml_sample.py (power_w, temperature_c, ...).
    """

    gpu: str
    simulated: bool
    period_ms: float
    columns: Mapping[str, tuple[float | None, ...]]
    transient_t_s: tuple[float, ...] = ()
    transient_power_w: tuple[float, ...] = ()
    """Instantaneous power, read every 20 ms during transients."""
    phases: tuple[Phase, ...] = ()
    schema: Literal["nodeprep.telemetry/1"] = field(default="nodeprep.telemetry/1")


@dataclass(frozen=True, slots=True, kw_only=True)
class HostRecord:
    """One host's line in the ledger. Every requested host has one from the start, as "unknown"."""

    host: str
    state: HostState = "unknown"
    phases: Mapping[str, HostState] = field(default_factory=dict)
    """Phase name to how it ended, in the order they ran."""
    error: str = ""
    hint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """`nodeprep.run/1`: what was asked for and how far it came; the run folder's run.json."""

    id: str
    verb: str
    started_at: str
    ended_at: str
    hosts: tuple[HostRecord, ...]
    level: str = ""
    workload: str = ""
    simulated: bool = False
    nodeprep_version: str = ""
    schema: Literal["nodeprep.run/1"] = field(default="nodeprep.run/1")


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeView:
    """One node in a report; None where a stage did not happen."""

    record: HostRecord
    facts_before: NodeFacts | None = None
    facts_after: NodeFacts | None = None
    plan: Plan | None = None
    probe: ProbeResult | None = None
    telemetry: tuple[TelemetrySeries, ...] = ()
    certificate: Certificate | None = None
    key_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunView:
    """The whole input of a report."""

    run: Run
    nodes: tuple[NodeView, ...]
