"""A simulated root with GPUs, for tests of node code that talks to NVML."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nodeprep.sim import hardware
from nodeprep.sim.hardware import Fault, SimulatedGpu

FIRST, SECOND, THIRD = "0000:17:00.0", "0000:2a:00.0", "0000:3d:00.0"


def root_with(
    path: Path, *gpus: SimulatedGpu, faults: Sequence[Fault] = (), lacks: Sequence[str] = ()
) -> str:
    """Installs GPUs below `path` and returns it as node code takes a root."""
    path.mkdir(exist_ok=True)
    hardware.install(path, gpus, faults=faults, driver_lacks=lacks)
    return str(path)


def gpu(address: str = FIRST, *faults: Fault, model: str = "h100-sxm", **values: Any) -> SimulatedGpu:
    """One GPU; values by path with "__" for the dot."""
    paths = {name.replace("__", "."): value for name, value in values.items()}
    return SimulatedGpu(address=address, model=model, faults=faults, values=paths)
