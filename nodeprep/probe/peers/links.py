"""NVLinks before and after: where they lead, which are up, and what they have counted.

A program of its own (`read` starts it): NVML must not be asked in the parent, whose telemetry uses
it, nor in a rank, which CUDA needs. It is killed at its deadline like every process that asks NVML.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from typing import Any, Callable, Dict, List, Sequence

from ...node import nvml_child, nvml_gpu, nvml_library, reading
from ...node.nvml_calls import Calls, describe, pci_address, read_fields
from .. import program

# Names of the document and the NVML field that holds each, one a link. The first three count on parts up to
# Hopper, the others from Hopper on; a part that lacks one says "not supported".
COUNTERS = {
    "replays": 161,
    "recoveries": 162,
    "crc_errors": 163,
    "malformed_packets": 206,
    "buffer_overruns": 207,
    "receive_errors": 208,
    "remote_receive_errors": 209,
    "integrity_errors": 211,
    "transmit_discards": 212,
    "failed_link_recoveries": 214,
    "link_recoveries": 215,
    "effective_errors": 219,
}
_REMOTE = {0: "gpu", 1: "npu", 2: "switch"}
_START = (
    "import sys; sys.path.insert(0, sys.argv.pop(1)); from nodeprep.probe.peers.links import main; main()"
)

# Of Python itself, on a cold disk.
_START_S = 10.0
_LOOK_S = 0.2

Link = Dict[str, Any]


def read(
    root: str, addresses: Sequence[str], deadline_s: float, stopped: Callable[[], bool]
) -> Dict[str, Any]:
    """A reading of each GPU's links by address; what NVML did not answer is an error with words."""
    command = [sys.executable, "-c", _START, program.IMPORT_PATH, root, str(deadline_s)]
    try:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        text = _output(process, time.monotonic() + deadline_s + _START_S, stopped)
        found: Dict[str, Any] = json.loads(text)
    except (OSError, ValueError) as problem:
        return dict.fromkeys(addresses, reading.error("the NVLinks could not be read: %s" % problem))
    missing = reading.error(found["failure"] or "NVML does not list this GPU")
    return {address: found["gpus"].get(address, missing) for address in addresses}


def _output(process: subprocess.Popen[bytes], end: float, stopped: Callable[[], bool]) -> bytes:
    """What a process prints until it ends.

    Raises:
        TimeoutError: It did not, or the run was stopped.
    """
    while True:
        try:
            return process.communicate(timeout=_LOOK_S)[0]
        except subprocess.TimeoutExpired:
            if not stopped() and time.monotonic() < end:
                continue
            process.kill()
            process.communicate()
            raise TimeoutError("no answer in time") from None


def main() -> None:
    """Prints {"gpus": {address: reading}, "failure": text}."""
    root, deadline_s = sys.argv[1], float(sys.argv[2])
    outcome = nvml_child.run(lambda pipe: _ask(root, pipe), deadline_s)
    gpus: Dict[str, Any] = {}
    problems: List[str] = [outcome.failure] if outcome.failure else []
    for message in outcome.messages:
        gpus.update(message.get("gpu", {}))
        problems.extend([message["problem"]] if "problem" in message else [])
    json.dump({"gpus": gpus, "failure": "; ".join(problems)}, sys.stdout)


def _ask(root: str, pipe: nvml_child.Pipe) -> None:
    """In the child."""
    step = "nvmlInit"
    try:
        calls = Calls(nvml_library.bind(root), pipe)
        calls.call(step)
        step = "nvmlDeviceGetCount"
        count = calls.call(step)
    except Exception as error:
        pipe.report(problem=describe(nvml_library.pynvml, step, error))
        return
    for index in range(count):
        named = Calls(calls.pynvml, pipe, "GPU index %d" % index)
        step = "nvmlDeviceGetHandleByIndex"
        try:
            handle = named.call(step, index)
            step = "nvmlDeviceGetPciInfo_v3"
            address, _ = nvml_gpu.pci_info(named, handle)
        except Exception as error:
            # The others still have links to be read.
            pipe.report(problem="GPU index %d: %s" % (index, describe(calls.pynvml, step, error)))
            continue
        pipe.report(gpu={address: _links(Calls(calls.pynvml, pipe, address), handle)})


def _links(calls: Calls, handle: Any) -> Dict[str, Any]:
    """A reading of all links of a GPU."""
    function = "nvmlDeviceGetNvLinkState"
    links: List[Link] = []
    states: List[Dict[str, Any]] = []
    for index in range(nvml_gpu.NVLINK_BOUND):
        try:
            states.append(reading.ok(bool(calls.call(function, handle, index))))
        except Exception as error:
            # Past the last link.
            if calls.is_code(error, "INVALID_ARGUMENT"):
                break
            states.append(calls.failed(function, error))
    if not states or all(state["state"] == "not_supported" for state in states):
        return reading.not_supported("NVML knows no NVLink of this GPU")
    for index, active in enumerate(states):
        fields = read_fields(calls, handle, list(COUNTERS.values()), scope=index)
        links.append(
            {
                "index": index,
                "active": active,
                "remote": _remote(calls, handle, index),
                "counters": {name: fields[field] for name, field in COUNTERS.items()},
            }
        )
    return reading.ok(links)


def _remote(calls: Calls, handle: Any, index: int) -> Dict[str, Any]:
    """A reading of where a link leads: "switch", or the address of the GPU at its other end."""
    kind = calls.read("nvmlDeviceGetNvLinkRemoteDeviceType", handle, index)
    if kind["state"] != "ok":
        return kind
    if kind["value"] not in _REMOTE:
        return reading.not_supported("NVML does not say what is at the other end")
    if _REMOTE[kind["value"]] != "gpu":
        return reading.ok(_REMOTE[kind["value"]])
    return calls.read(
        "nvmlDeviceGetNvLinkRemotePciInfo", handle, index, value=lambda info: pci_address(_text(info.busId))
    )


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
