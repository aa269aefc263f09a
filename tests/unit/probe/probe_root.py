"""A small simulated root, and the probe run on it as users run it: in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from nodeprep.model.codec import decode
from nodeprep.model.probe import ProbeResult
from nodeprep.sim import hardware
from nodeprep.sim.hardware import Fault, SimulatedGpu

ADDRESSES = ("0000:17:00.0", "0000:2a:00.0")
# A whole probe takes 5 s alone, and 40 s beside eight busy processes on two CPUs.
PATIENCE_S = 180.0


def make_root(path: Path, *faults: Fault, on: int = 1, **values: Any) -> Path:
    """A root with two GPUs; faults and values are the second one's."""
    gpus = [SimulatedGpu(address=address, seed="probe") for address in ADDRESSES]
    gpus[on] = SimulatedGpu(address=ADDRESSES[on], seed="probe", faults=faults, values=values)
    hardware.install(path, gpus)
    return path


def command(root: Path, out: Path, *more: str) -> list[str]:
    """The probe's command line."""
    run = [sys.executable, "-m", "nodeprep.probe", "run", "--root", str(root)]
    return [*run, "--workload", "tiny", "--out", str(out), *more]


def run(root: Path, out: Path, *more: str) -> subprocess.CompletedProcess[str]:
    """Runs the probe to its end."""
    return subprocess.run(
        command(root, out, *more), capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )


def start(root: Path, out: Path, *more: str) -> subprocess.Popen[str]:
    """Starts the probe and returns once every GPU has computed something."""
    process = subprocess.Popen(
        command(root, out, *more), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    wait_for(out, lambda line: "TFLOP/s" in line["message"])
    return process


def wait_for(out: Path, wanted: Callable[[dict[str, Any]], bool]) -> None:
    """Waits for a progress line."""
    end = time.monotonic() + PATIENCE_S
    while not any(map(wanted, progress(out))):
        assert time.monotonic() < end, f"it never came: {progress(out)}"
        time.sleep(0.05)


def progress(out: Path) -> list[dict[str, Any]]:
    """Whole progress lines so far."""
    try:
        text = (out / "progress.jsonl").read_text()
    except FileNotFoundError:
        return []
    return [json.loads(line) for line in text.split("\n")[:-1]]


def result(out: Path) -> ProbeResult:
    """The result, as the controller decodes it."""
    return decode((out / "result.json").read_bytes(), ProbeResult, source="result.json")


def workers(pid: int) -> list[int]:
    """Worker processes of a probe."""
    return [child for child in children(pid) if b"probe.worker" in _command_line(child)]


def children(pid: int) -> Iterator[int]:
    """Processes whose parent is the given one."""
    for name in [path.name for path in Path("/proc").iterdir()]:
        if name.isdigit() and _parent(int(name)) == pid:
            yield int(name)


def alive(pid: int) -> bool:
    """Running, and not only a name in the process table."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"


def wait_until_dead(*pids: int) -> None:
    """Waits for the end of processes that should be ending."""
    end = time.monotonic() + 5
    while any(alive(pid) for pid in pids):
        assert time.monotonic() < end, f"still alive: {[pid for pid in pids if alive(pid)]}"
        time.sleep(0.02)


def _parent(pid: int) -> int | None:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except (FileNotFoundError, ProcessLookupError):
        return None


def _command_line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""
