"""GPU and memory keep a distance to the temperature at which they slow down, under load."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from nodeprep.checks._check import Check, Context
from nodeprep.checks._facts import gpus
from nodeprep.checks._runs import each_run, telemetry
from nodeprep.model.facts import Gpu
from nodeprep.model.probe import GpuRun, Telemetry
from nodeprep.model.reading import Unreadable
from nodeprep.model.result import CheckResult


def evaluate(context: Context) -> Iterator[CheckResult]:
    """One result a GPU.

    Newer parts say how many degrees are left (T.Limit), older ones give temperature and threshold
    in absolute degrees. The two are never mixed: a T.Limit of 5 is not 5 degrees Celsius.
    """
    known = {gpu.pci_address: gpu for gpu, _ in gpus(context, "before")}
    yield from each_run(CHECK, context, "telemetry", partial(_judge, context, known))


def _judge(context: Context, known: dict[str, Gpu], run: GpuRun) -> CheckResult:
    address, limit = run.pci_address, context.spec.profile.temperature_margin_c
    if address not in known:
        raise Unreadable(f"NVML did not list GPU {address} before the load: its thresholds are unknown")
    samples = telemetry(run)
    core, how = _core_margin(known[address], samples)
    memory, told = _memory_margin(known[address], samples)
    margin = core if memory is None else min(core, memory)
    if core < limit.value:
        reason = f"GPU {address} came within {core:g} C of its slowdown temperature under load ({how})"
    elif memory is not None and memory < limit.value:
        reason = f"memory of GPU {address} came within {memory:g} C of its limit under load ({told})"
    else:
        reason = f"GPU {address} kept {core:g} C to its slowdown temperature ({how}); memory: {told}"
    return CHECK.result(
        "PASS" if margin >= limit.value else "FAIL",
        address,
        reason,
        measured=margin,
        limit=limit.value,
        unit=limit.unit,
        source=limit.source,
    )


def _core_margin(gpu: Gpu, samples: Telemetry) -> tuple[float, str]:
    address = gpu.pci_address
    if samples.margin_c.state != "not_supported":
        return samples.margin_c.require(f"the T.Limit margin of GPU {address} under load").min, "T.Limit"
    hottest = samples.temperature_c.require(f"the temperature of GPU {address} under load").max
    slowdown = gpu.temperature.slowdown_c.require(f"the slowdown temperature of GPU {address}")
    return slowdown - hottest, f"{hottest:g} C, slowdown at {slowdown} C"


def _memory_margin(gpu: Gpu, samples: Telemetry) -> tuple[float | None, str]:
    address = gpu.pci_address
    if samples.memory_temperature_c.state == "not_supported":
        return None, "not measured by this part"
    hottest = samples.memory_temperature_c.require(f"the memory temperature of GPU {address} under load").max
    if gpu.temperature.memory_max_c.state == "not_supported":
        return None, f"{hottest:g} C, this part gives no limit in absolute degrees"
    limit = gpu.temperature.memory_max_c.require(f"the memory temperature limit of GPU {address}")
    return limit - hottest, f"{hottest:g} C, limit {limit} C"


CHECK = Check(
    id="temperature_margin_load",
    title="temperature margin under load",
    phase="load",
    evaluate=evaluate,
    explains=("clock_reasons_load", "probe_performance"),
    tolerates={
        "gpus/*/telemetry/margin_c": "older parts have no T.Limit; absolute degrees are compared instead",
        "gpus/*/telemetry/memory_temperature_c": "not every part measures its memory",
        "nvml/gpus/*/temperature/memory_max_c": "Hopper and later give no absolute limit for memory",
    },
)
