"""`nodeprep.diagnosis/1`: what logs and counters say went wrong, one evidence chain an incident."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Layer = Literal["application", "driver", "hardware", "firmware_pcie", "config", "host"]
Severity = Literal["info", "warning", "error", "critical"]
Action = Literal[
    "none",
    "observe",
    "restart_app",
    "reset_gpu",
    "drain",
    "reboot_node",
    "cold_power_cycle",
    "run_diagnostics",
    "rma",
    "fix_config",
    "update_driver",
    "replace_part",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class DiagnosisInput:
    """One input, or one section of it, as it was read."""

    source: str
    format: str
    lines: int
    first: str = ""
    """Time of the first message; "" when none has one."""
    last: str = ""
    gaps: tuple[str, ...] = ()
    """What is missing from it, in words; not empty means that nothing may be called healthy."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceLine:
    """A quoted line and what it was taken for."""

    source: str
    line: int
    event: str
    text: str
    time: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RootCause:
    """Where an incident began."""

    device: str
    event: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """One fault with all that followed from it."""

    id: str
    layer: Layer
    severity: Severity
    device: str
    """PCI address of what suffers; "" when the fault is of the node as a whole."""
    summary: str
    why: str
    """Why we think so, in sentences."""
    xids: tuple[int, ...]
    action: Action
    actions: tuple[str, ...]
    root: RootCause
    count: int
    first: str = ""
    last: str = ""
    host: str = ""
    """As its lines name it; "" when they name none."""
    evidence: tuple[EvidenceLine, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """The whole document; `healthy` only if no incident is above info and all input was read."""

    healthy: bool
    inputs: tuple[DiagnosisInput, ...]
    incidents: tuple[Incident, ...]
    simulated: bool = False
    schema: Literal["nodeprep.diagnosis/1"] = field(default="nodeprep.diagnosis/1")
