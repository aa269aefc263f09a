"""What `certify` was asked for, and what that means for each host."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nodeprep.errors import UsageError
from nodeprep.model.policy import Level, Policy
from nodeprep.workflows.workloads import load_workload

# The probe knows which values fit its workload; what is no fault at all needs no node to be told.
_FAULT = re.compile(r"flip:[a-z]+=[\w:.]+(,[a-z]+=[\w:.]+)*|hang:rank=\d+")


@dataclass(frozen=True, slots=True, kw_only=True)
class CertifyOptions:
    """What `certify` was asked for beyond its hosts.

    Attributes:
        level: None takes each host's policy.
        workload: Name, or path of a YAML file; None takes each host's policy.
        inject: Fault for the probe to inject, for example "flip:block=7,bit=0"; never certifies.
        soak_s: Length of a soak in seconds; 0 takes the probe's own (seven days).
        key: Private key file; None takes (or makes) the one in the home folder.
    """

    level: Level | None = None
    workload: str | None = None
    inject: str = ""
    soak_s: float = 0.0
    key: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What one host is to be loaded with."""

    level: Level
    workload: str | Mapping[str, Any]
    workload_name: str
    inject: str
    soak_s: float = 0.0


def ask(policy: Policy, options: CertifyOptions) -> Asked:
    """The options where they say something, else the host's policy.

    Raises:
        UsageError: The level, the workload or the fault is none that this version can run.
    """
    level = options.level or policy.certify.level
    if options.soak_s and level != "soak":
        raise UsageError(
            f"--soak-hours is for the level soak, and the level is {level}",
            hint="add --level soak",
        )
    if options.inject and not _FAULT.fullmatch(options.inject):
        raise UsageError(
            f"no fault {options.inject!r}", hint="for example flip:block=7,bit=0 (see docs/probe.md)"
        )
    workload = load_workload(options.workload or policy.certify.workload)
    name = workload if isinstance(workload, str) else str(workload["name"])
    return Asked(
        level=level,
        workload=workload,
        workload_name=name,
        inject=options.inject,
        soak_s=options.soak_s,
    )
