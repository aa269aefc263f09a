"""The probe's compute phase and gpu-burn on the same GPU, in turns: power, PCIe traffic, temperature.

    PYTHONPATH=. python3 benchmarks/probe_vs_gpuburn.py --gpu-burn DIR/gpu_burn [--seconds 60] [--rounds 3]

Needs both: this checkout with a Python that has torch, and gpu-burn (github.com/wilicc/gpu-burn), built where
its compare.ptx lies. Each round runs the probe, gpu-burn in its default mode and with tensor cores (-tc),
with a pause before each, so that none starts on the other's heat. NVML is read the same way for all, by the
probe's own sampler, and the first seconds of each are left out. Prints one JSON line a run and the medians
at the end. gpu-burn's own exit code is told as well: it is 0 also for a GPU that it calls FAULTY.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from nodeprep.node import nvml_sample
from nodeprep.probe import gpus

PERIOD_S = 0.2
# Import, warm-up and what NVML's one-second mean of power still remembers of before.
SETTLING_S = 10.0
PAUSE_S = 20.0
COLUMNS = ("power_w", "temperature_c", "memory_temperature_c", "sm_mhz", "pcie_rx_gbps", "pcie_tx_gbps")


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--gpu-burn", type=Path, required=True, help="the program gpu_burn")
    parser.add_argument("--seconds", type=float, default=60.0, help="length of each run")
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    if not given.gpu_burn.is_file():
        sys.exit(f"error: no program {given.gpu_burn}\nhint: build gpu-burn and name its gpu_burn")
    first = gpus.find("/", 30.0).gpus[0]
    found: dict[str, list[dict[str, Any]]] = {}
    for number in range(given.rounds):
        for name, command, folder in _runs(given):
            time.sleep(PAUSE_S)
            figures = _measure(command, folder, first.uuid, first.address)
            found.setdefault(name, []).append(figures)
            print(json.dumps({"round": number + 1, "what": name, **figures}), flush=True)
    print(json.dumps({"gpu": first.name, "medians": {name: _medians(runs) for name, runs in found.items()}}))


def _runs(given: argparse.Namespace) -> Iterator[tuple[str, list[str], Path]]:
    """Name, command line and working folder of each contestant."""
    burn, seconds = given.gpu_burn.resolve(), str(int(given.seconds))
    out = tempfile.mkdtemp(prefix="probe-vs-gpuburn-")
    probe = [sys.executable, "-m", "nodeprep.probe", "run", "--duration-s", seconds, "--out", out]
    yield "probe", probe, Path.cwd()
    # gpu-burn looks for compare.ptx where it is started.
    yield "gpu-burn", [str(burn), "-i", "0", seconds], burn.parent
    yield "gpu-burn -tc", [str(burn), "-i", "0", "-tc", seconds], burn.parent


def _measure(command: list[str], folder: Path, uuid: str, address: str) -> dict[str, Any]:
    series: dict[str, list[float]] = {name: [] for name in COLUMNS}
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": uuid}
    process = subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    started = time.monotonic()
    with nvml_sample.Sampler("/", [address]) as sampler:
        while process.poll() is None:
            sample = sampler.sample()[address]
            busy = (sample["utilization_percent"] or 0) > 90
            if busy and time.monotonic() - started > SETTLING_S:
                for name in COLUMNS:
                    value = sample[name]
                    if value is not None:
                        series[name].append(value)
            time.sleep(PERIOD_S)
    means = {name: round(statistics.mean(values), 1) for name, values in series.items() if values}
    return {"exit": process.returncode, "samples": len(series["power_w"]), **means}


def _medians(runs: list[dict[str, Any]]) -> dict[str, float]:
    names = {name for run in runs for name in run if name in COLUMNS}
    return {name: statistics.median(run[name] for run in runs if name in run) for name in sorted(names)}


if __name__ == "__main__":
    main()
