"""A small simulated root with three GPUs: enough for one to fail and two to have each other."""

from __future__ import annotations

from pathlib import Path

from probe_root import ADDRESSES

from nodeprep.sim import hardware

THIRD = "0000:3d:00.0"


def three(path: Path, *faults: hardware.Fault, on: int = 1) -> Path:
    """A root with three GPUs, one of them with faults."""
    addresses = (*ADDRESSES, THIRD)
    hardware.install(
        path,
        [
            hardware.SimulatedGpu(address=at, seed="probe", faults=faults if place == on else ())
            for place, at in enumerate(addresses)
        ],
    )
    return path
