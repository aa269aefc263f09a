"""Power limits and persistence through NVML, each step in a child process with a deadline."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import List, Tuple

from . import nvml_child, nvml_gpu, nvml_library, reading
from .nvml_calls import Calls, describe, read_fields
from .nvml_child import Pipe
from .reading import Reading


@dataclass(frozen=True)
class GpuPower:
    """What one GPU has now. Readings of limits are in milliwatts."""

    address: str
    uuid: str
    name: Reading
    limit: Reading
    requested: Reading
    enforced: Reading
    default: Reading
    lowest: Reading
    highest: Reading
    persistence: Reading


@dataclass(frozen=True)
class Snapshot:
    """All GPUs, and what kept others from being read ("" when nothing did)."""

    gpus: Tuple[GpuPower, ...]
    problem: str


@dataclass(frozen=True)
class Change:
    """One setting of one GPU: `what` is "limit" (milliwatts) or "persistence" (0, 1)."""

    address: str
    uuid: str
    what: str
    old: int
    new: int

    def __str__(self) -> str:
        if self.what == "limit":
            return f"power limit of {self.address} from {self.old / 1000:g} W to {self.new / 1000:g} W"
        return f"persistence of {self.address} {'on' if self.new else 'off'}"


@dataclass
class Written:
    """How a series of changes ended.

    Attributes:
        done: Changes that were made.
        problem: "" when all were, else what happened.
    """

    done: List[Change] = field(default_factory=list)
    problem: str = ""


def read(root: str, deadline_s: float) -> Snapshot:
    """The present settings of every GPU."""
    outcome = nvml_child.run(lambda pipe: _read_all(root, pipe), deadline_s)
    problems = [message["problem"] for message in outcome.messages if "problem" in message]
    problems.extend([outcome.failure] if outcome.failure else [])
    gpus = tuple(GpuPower(**message["gpu"]) for message in outcome.messages if "gpu" in message)
    return Snapshot(gpus, "; ".join(problems))


def write(root: str, changes: List[Change], deadline_s: float, *, go_on: bool = False) -> Written:
    """Makes the changes in order.

    Args:
        root: "/" or a simulated root.
        changes: What to set.
        deadline_s: Seconds for all of them; a driver that hangs ends the series.
        go_on: Goes on with the others when one fails; else the first failure ends it.
    """
    if not changes:
        return Written()
    outcome = nvml_child.run(lambda pipe: _write_all(root, changes, pipe, go_on), deadline_s)
    problems = [message["problem"] for message in outcome.messages if "problem" in message]
    problems.extend([outcome.failure] if outcome.failure else [])
    done = [changes[message["made"]] for message in outcome.messages if "made" in message]
    return Written(done=done, problem="; ".join(problems))


def _read_all(root: str, pipe: Pipe) -> None:
    step = "nvmlInit"
    try:
        pipe.mark(step)
        calls = Calls(nvml_library.bind(root), pipe)
        calls.call(step)
        step = "nvmlDeviceGetCount"
        count = calls.call(step)
    except Exception as error:
        pipe.report(problem=describe(nvml_library.pynvml, step, error))
        return
    for index in range(count):
        _read_one(Calls(calls.pynvml, pipe, f"GPU index {index}"), pipe, index)


def _read_one(nameless: Calls, pipe: Pipe, index: int) -> None:
    step = "nvmlDeviceGetHandleByIndex"
    try:
        handle = nameless.call(step, index)
        step = "nvmlDeviceGetPciInfo_v3"
        address, _ = nvml_gpu.pci_info(nameless, handle)
        step = "nvmlDeviceGetUUID"
        uuid = nameless.call(step, handle)
    except Exception as error:
        pipe.report(problem=f"GPU index {index}: {describe(nameless.pynvml, step, error)}")
        return
    calls = Calls(nameless.pynvml, pipe, address)
    constraints = calls.read("nvmlDeviceGetPowerManagementLimitConstraints", handle)
    both = constraints["state"] == "ok"
    requested = nvml_gpu.FIELD_REQUESTED_POWER
    pipe.report(
        gpu={
            "address": address,
            "uuid": uuid,
            "name": calls.read("nvmlDeviceGetName", handle),
            "limit": calls.read("nvmlDeviceGetPowerManagementLimit", handle),
            "requested": read_fields(calls, handle, [requested])[requested],
            "enforced": calls.read("nvmlDeviceGetEnforcedPowerLimit", handle),
            "default": calls.read("nvmlDeviceGetPowerManagementDefaultLimit", handle),
            "lowest": reading.ok(constraints["value"][0]) if both else constraints,
            "highest": reading.ok(constraints["value"][1]) if both else constraints,
            "persistence": calls.read("nvmlDeviceGetPersistenceMode", handle, value=bool),
        }
    )


def _write_all(root: str, changes: List[Change], pipe: Pipe, go_on: bool) -> None:
    """Reports numbers of changes that were "made", and each "problem"."""
    pipe.mark("nvmlInit")
    pynvml = nvml_library.load(root)
    for number, change in enumerate(changes):
        try:
            _set(Calls(pynvml, pipe, change.address), change, change.new)
        except Exception as error:
            pipe.report(problem=f"{change}: {describe(pynvml, _SETTERS[change.what], error)}")
            if not go_on:
                return
        else:
            pipe.report(made=number)


# Not nvmlDeviceSetPowerManagementLimit_v2: the binding does not look at what it returns.
_SETTERS = {"limit": "nvmlDeviceSetPowerManagementLimit", "persistence": "nvmlDeviceSetPersistenceMode"}


def _set(calls: Calls, change: Change, value: int) -> None:
    # By UUID: indices shift when a GPU is lost.
    handle = calls.call("nvmlDeviceGetHandleByUUID", change.uuid)
    calls.call(_SETTERS[change.what], handle, value)
