"""How fast the site's other GPUs were with the same workload, as a floor for this one."""

from __future__ import annotations

import statistics
from dataclasses import dataclass

from nodeprep.model.probe import GpuRun, ProbeResult
from nodeprep.model.sighting import SiteRecords, comparable

# Fewer GPUs have no median worth the name: one slow one would be half of it.
LEAST_GPUS = 3
# Source: superbench, 5 % against a baseline; gpu-fryer's 10 % is against the best GPU, a harder mark.
FRACTION_BELOW_MEDIAN = 0.05
SOURCE = "superbench: 5 % below a baseline, here the median of this site's other GPUs of the model"
# Power limits closer than this are one limit: boards report it in steps.
LIMIT_TOLERANCE = 0.01


@dataclass(frozen=True, slots=True)
class Baseline:
    """What other GPUs reached.

    Attributes:
        gpus: How many GPUs it is of.
        median_tflops: None when they are too few.
    """

    gpus: int
    median_tflops: float | None

    @property
    def floor_tflops(self) -> float | None:
        """What a GPU must reach; None when nothing is known."""
        return None if self.median_tflops is None else self.median_tflops * (1 - FRACTION_BELOW_MEDIAN)


def baseline(records: SiteRecords, probe: ProbeResult, run: GpuRun) -> Baseline:
    """The latest result of every other GPU with the same model, build, workload and power limit.

    Raises:
        Unreadable: This GPU's limit is not known, so nothing can be said to be like it.
    """
    limit_w = run.telemetry.enforced_limit_w.require(f"the enforced power limit of GPU {run.pci_address}")
    latest: dict[str, float] = {}
    for sighting in comparable(records, probe, run):
        if sighting.kind != "seen" or sighting.gpu == run.uuid or sighting.achieved_tflops is None:
            continue
        if sighting.enforced_limit_w is None:
            continue
        if abs(sighting.enforced_limit_w - limit_w) <= LIMIT_TOLERANCE * limit_w:
            latest[sighting.gpu] = sighting.achieved_tflops
    enough = len(latest) >= LEAST_GPUS
    return Baseline(len(latest), statistics.median(latest.values()) if enough else None)
