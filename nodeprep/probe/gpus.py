"""Which GPUs there are, who else uses them, and how much memory is free. Asked before any load."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, List, Sequence, Tuple

from ..node import nvml_child, nvml_gpu, nvml_library
from ..node.nvml_calls import Calls, describe
from .problem import ProbeError


@dataclass(frozen=True)
class Gpu:
    """One GPU as NVML knows it.

    Attributes:
        processes: Reading: process ids that compute on it now.
        free_bytes: Reading of free device memory.
        enforced_limit_w: Reading of the limit the board obeys.
    """

    address: str
    uuid: str
    name: str
    processes: Dict[str, Any]
    free_bytes: Dict[str, Any]
    enforced_limit_w: Dict[str, Any]


@dataclass(frozen=True)
class Census:
    """What was found.

    Attributes:
        driver: Driver version, "" when it would not say.
        problems: GPUs or calls that failed; not empty means that the list may lack GPUs.
    """

    gpus: Tuple[Gpu, ...]
    driver: str
    problems: Tuple[str, ...]


def find(root: str, deadline_s: float) -> Census:
    """Asks NVML in a child process that is killed at the deadline.

    Raises:
        ProbeError: No driver, no GPU, or no answer.
    """
    outcome = nvml_child.run(lambda pipe: _ask(root, pipe), deadline_s)
    gpus: List[Gpu] = []
    problems: List[str] = []
    driver = ""
    for message in outcome.messages:
        if "gpu" in message:
            gpus.append(Gpu(**message["gpu"]))
        driver = message.get("driver", driver)
        problems.extend([message["problem"]] if "problem" in message else [])
    if outcome.failure:
        problems.append(outcome.failure)
    if not gpus:
        raise ProbeError(
            "no GPU can be used: %s" % ("; ".join(problems) or "NVML lists none"),
            hint="nvidia-smi must list the GPUs; without a driver there is nothing to load"
            if nvml_library.is_real(root)
            else "the simulated root lists no GPU",
        )
    return Census(tuple(gpus), driver, tuple(problems))


def select(census: Census, addresses: Sequence[str]) -> Tuple[Gpu, ...]:
    """The GPUs at the given addresses, or all.

    Raises:
        ProbeError: There is no GPU at one of them.
    """
    if not addresses:
        return census.gpus
    by_address = {gpu.address: gpu for gpu in census.gpus}
    wanted = [address.lower() for address in addresses]
    # "17:00.0" and NVML's eight-digit domain are as good as the full address.
    wanted = ["0000:" + a if a.count(":") == 1 else "%04x:%s" % _split_domain(a) for a in wanted]
    for address in wanted:
        if address not in by_address:
            why = "; " + "; ".join(census.problems) if census.problems else ""
            raise ProbeError(
                "there is no GPU at %s%s" % (address, why), hint="NVML lists %s" % ", ".join(by_address)
            )
    return tuple(by_address[address] for address in dict.fromkeys(wanted))


def _split_domain(address: str) -> Tuple[int, str]:
    domain, _, rest = address.partition(":")
    try:
        return int(domain, 16), rest
    except ValueError:
        raise ProbeError("%r is not a PCI address" % address, hint="for example 0000:17:00.0") from None


def check_free(gpu: Gpu, share: bool, need_bytes: int) -> str:
    """Whether the GPU may be loaded; what could not be read, in words ("" when all was).

    Raises:
        ProbeError: Others compute on it, or its free memory is too small.
    """
    unread = []
    processes, free = gpu.processes, gpu.free_bytes
    if processes["state"] == "ok" and processes["value"] and not share:
        raise ProbeError(
            "GPU %s is in use by process %s" % (gpu.address, ", ".join(map(str, processes["value"]))),
            hint="stop them, name other GPUs with --gpu, or accept their disturbance with --share",
        )
    if processes["state"] == "error":
        unread.append("whether others use it: %s" % processes["detail"])
    if free["state"] == "ok" and free["value"] < need_bytes:
        raise ProbeError(
            "the workload needs about %.1f GiB of GPU %s, and %.1f GiB are free"
            % (need_bytes / 2**30, gpu.address, free["value"] / 2**30),
            hint="use a smaller batch or model in a workload file, or free the GPU",
        )
    if free["state"] == "error":
        unread.append("its free memory: %s" % free["detail"])
    return "; ".join(unread)


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
    version = calls.read("nvmlSystemGetDriverVersion")
    pipe.report(driver=str(version.get("value", "")))
    for index in range(count):
        _ask_one(Calls(calls.pynvml, pipe, "GPU index %d" % index), pipe, index)


def _ask_one(calls: Calls, pipe: nvml_child.Pipe, index: int) -> None:
    step = "nvmlDeviceGetHandleByIndex"
    try:
        handle = calls.call(step, index)
        step = "nvmlDeviceGetPciInfo_v3"
        address, _ = nvml_gpu.pci_info(calls, handle)
        step = "nvmlDeviceGetUUID"
        uuid = calls.call(step, handle)
        step = "nvmlDeviceGetName"
        name = calls.call(step, handle)
    except Exception as error:
        # The others are still worth loading; the gap makes the run a failed one.
        pipe.report(problem="GPU index %d: %s" % (index, describe(calls.pynvml, step, error)))
        return
    pipe.report(
        gpu={
            "address": address,
            "uuid": uuid,
            "name": name,
            "processes": calls.read(
                "nvmlDeviceGetComputeRunningProcesses", handle, value=lambda found: [p.pid for p in found]
            ),
            "free_bytes": calls.read("nvmlDeviceGetMemoryInfo", handle, value=lambda info: info.free),
            "enforced_limit_w": calls.read(
                "nvmlDeviceGetEnforcedPowerLimit", handle, value=lambda milliwatts: milliwatts / 1000.0
            ),
        }
    )
