"""A simulated NVIDIA driver in a container: library, GPUs and persistence daemon.

The library is the one of the simulated rack. Here it stands where nvidia-ml-py looks for the real one,
so node code runs with "/" as its root and does not know. Whoever looks must: the GPUs' names say
simulated, and the inventory names their PCI ids in `nodeprep_gpu_ids`, with which facts say so too.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from nodeprep.sim import hardware
from nodeprep.sim.hardware import SimulatedGpu

_FILES = Path(__file__).with_name("driver_files")
_DAEMON = "nvidia-persistenced.service"


def install(tree: Path, gpus: int, seed: str) -> list[str]:
    """Put the driver with this many GPUs into a container, and return their PCI ids.

    Limits and persistence are kept in /run, and so are lost with a reboot, as the real driver's are.
    """
    shutil.copytree(_FILES, tree, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    # A wheel may have lost the mode.
    (tree / "usr/bin/nvidia-persistenced").chmod(0o755)
    wants = tree / "etc/systemd/system/multi-user.target.wants"
    wants.mkdir(parents=True, exist_ok=True)
    (wants / _DAEMON).symlink_to(f"/usr/lib/systemd/system/{_DAEMON}")
    values = {"name": "NVIDIA H100 80GB HBM3 (simulated)", "persistence": False}
    simulated = [
        SimulatedGpu(address=f"0000:{0x10 + number:02x}:00.0", seed=seed, values=values)
        for number in range(gpus)
    ]
    hardware.install(tree, simulated)
    return sorted({gpu.device_id for gpu in simulated})
