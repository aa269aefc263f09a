"""The `nvml` part of the facts document, from a child process with a deadline."""

from __future__ import annotations

from typing import Any

from . import nvml_child, nvml_gpu, nvml_library, reading
from .nvml_calls import Calls, describe
from .nvml_child import Outcome, Pipe
from .reading import Reading

DEADLINE_S = 30.0


def collect(root: str = "/", deadline_s: float = DEADLINE_S) -> dict[str, Any]:
    """All that NVML says about this node. Never raises; what could not be read says why.

    Args:
        root: "/" for the machine, else a simulated root with its own driver library.
        deadline_s: Seconds after which NVML counts as hung; its process is then killed.
    """
    outcome = nvml_child.run(lambda pipe: _observe(root, pipe), deadline_s)
    return _document(outcome)


def _observe(root: str, pipe: Pipe) -> None:
    """In the child: reports what is read as soon as it is there, so that a hang loses nothing."""
    calls = None
    step = "nvmlInit"
    try:
        pipe.mark(step)
        calls = Calls(nvml_library.bind(root), pipe)
        calls.call("nvmlInit")
        pipe.report(system=_system(calls))
        step = "nvmlDeviceGetCount"
        count = calls.call(step)
    except Exception as error:
        pipe.report(broken=describe(nvml_library.pynvml, step, error))
        return
    for index in range(count):
        _observe_gpu(calls, pipe, index)


def _system(calls: Calls) -> dict[str, Reading]:
    return {
        "driver_version": calls.read("nvmlSystemGetDriverVersion"),
        "library_version": calls.read("nvmlSystemGetNVMLVersion"),
        "cuda_version": calls.read("nvmlSystemGetCudaDriverVersion_v2", value=_cuda_version),
    }


def _cuda_version(number: int) -> str:
    return f"{number // 1000}.{number % 1000 // 10}"


def _observe_gpu(calls: Calls, pipe: Pipe, index: int) -> None:
    nameless = Calls(calls.pynvml, pipe, f"GPU index {index}")
    step = "nvmlDeviceGetHandleByIndex"
    try:
        handle = nameless.call(step, index)
        step = "nvmlDeviceGetPciInfo_v3"
        address, device_id = nvml_gpu.pci_info(nameless, handle)
    except Exception as error:
        # One GPU that cannot be opened must not hide the others. That it is lost is an answer; any
        # other failure leaves open what this GPU is, and so the list is no list.
        words = f"GPU index {index}: {describe(calls.pynvml, step, error)}"
        is_lost = nameless.is_code(error, "GPU_IS_LOST")
        pipe.report(**{"lost" if is_lost else "broken": words})
        return
    named = Calls(calls.pynvml, pipe, address)
    pipe.report(gpu=nvml_gpu.collect(named, handle, index, address, device_id))
    if named.lost:
        pipe.report(lost=f"GPU {address}: {named.lost}")


def _document(outcome: Outcome) -> dict[str, Any]:
    system: dict[str, Reading] = {}
    gpus: list[dict[str, Any]] = []
    problems: list[str] = []
    lost: list[str] = []
    for message in outcome.messages:
        system.update(message.get("system", {}))
        gpus.extend([message["gpu"]] if "gpu" in message else [])
        problems.extend([message["broken"]] if "broken" in message else [])
        lost.extend([message["lost"]] if "lost" in message else [])
    problems.extend([outcome.failure] if outcome.failure else [])
    why = "; ".join(problems)
    unread = reading.error(why or "NVML gave no version")
    return {
        "driver_version": system.get("driver_version", unread),
        "library_version": system.get("library_version", unread),
        "cuda_version": system.get("cuda_version", unread),
        "gpus": reading.error(why) if problems else reading.ok(gpus),
        "partial": gpus if problems else [],
        "lost": lost,
    }
